"""The service: one curator for each data set behind every door, with identity, admission and an audit log in one place.

A door (a folder here: `http/`) speaks a protocol and takes no decision. It calls `Service`, from asyncio through
`Service.call`, and translates what comes back: the curator's objects, or an error of `sfumato.errors`.
"""
