"""The console: pages of the service for people with a browser. Every act is the service's."""
