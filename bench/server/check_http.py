"""`make http`: requests that schemathesis derives from the OpenAPI document, sent to the demo by its owner."""

import subprocess
import sys
from pathlib import Path

from sfumato.server.demo import serve_demo

HERE = Path(__file__).parent
PROGRAM = HERE.parent / ".peers" / "server-http" / "bin" / "schemathesis"


def main() -> int:
    demo = serve_demo()
    try:
        base = demo.url.rpartition("/")[0]
        command = [
            str(PROGRAM), "--config-file", str(HERE / "schemathesis.toml"), "run", f"{base}/openapi.json",
            "--header", f"Authorization: Bearer {demo.tokens['owner']}",
            *(sys.argv[1:] or ["--max-examples", "30", "--phases", "examples,coverage,fuzzing"]),
        ]  # fmt: skip
        return subprocess.run(command).returncode
    finally:
        demo.stop()


if __name__ == "__main__":
    sys.exit(main())
