"""`make clients`: a service with the demo's data, asked by every client that is here, through its PostgreSQL door; and
the snippets of docs/ask-from-your-tool.md, each by its tool.

With Java, and pgjdbc where Debian puts it, the metadata that BI tools on it look at are read as well.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from bench.server import snippets
from sfumato.server import demo
from sfumato.server.configuration import Configuration, Listen
from sfumato.server.postgres.door import PostgresDoor
from sfumato.server.service import Service

HERE = Path(__file__).parent
CLIENTS = HERE.parent / ".peers" / "server-clients" / "bin" / "python"
PGJDBC = Path("/usr/share/java/postgresql.jar")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place, tokens = demo.build(Path(folder))
        settings = Configuration.load(place)
        service, loop = Service.open(settings), asyncio.new_event_loop()
        door = PostgresDoor(service, settings, Listen("127.0.0.1", 0), None)
        threading.Thread(target=loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(door.start(), loop).result()
        words = ["127.0.0.1", str(door.port), "journalist", "clinic", tokens["journalist"]]
        failed = subprocess.run([CLIENTS, HERE / "clients.py", *words]).returncode
        if shutil.which("javac") and PGJDBC.exists():
            subprocess.run(["javac", "-d", folder, HERE / "Metadata.java"], check=True)
            failed += subprocess.run(["java", "-cp", f"{folder}:{PGJDBC}", "Metadata", *words]).returncode
        failed += snippets.run(["127.0.0.1", str(door.port), "journalist", "clinic", tokens["journalist"]], CLIENTS)
        asyncio.run_coroutine_threadsafe(door.stop(), loop).result()
        service.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
