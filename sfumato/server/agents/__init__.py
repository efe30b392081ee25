"""The door for agents: the Model Context Protocol, over standard input and output."""
