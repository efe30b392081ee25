"""The kinds of losses: one file each, with its formula and its source."""
