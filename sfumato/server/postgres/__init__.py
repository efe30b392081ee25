"""The PostgreSQL door: psql, drivers and BI tools ask the curator without an adapter."""
