"""What is audited: a file for each part of the package, with a tuple EXHIBITS; see `sfumato.audit.collection`."""
