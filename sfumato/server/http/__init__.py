"""The HTTP door: JSON, CSV and Arrow over FastAPI and uvicorn. It takes no decision."""
