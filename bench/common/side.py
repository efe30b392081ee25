"""A process that answers requests in JSON lines, seen from the other end of the pipe."""

import json
import os
import select
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")


@dataclass
class Side:
    """One package and the Python that has it; its process starts with the first request and after each failure."""

    name: str
    folder: Path  # has sides/<name>.py
    python: Path
    limit: float  # seconds for one request
    version: str = ""
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def installed(self) -> bool:
        return self.python.exists()

    def ask(self, job: str, arguments: dict[str, object], times: int, seconds: float) -> dict[str, object]:
        """The reply to one request: {"ms", "answer"}, {"absent"}, {"error"} or {"late"}."""
        try:
            if self.process is None:
                self.start()
            request = {"job": job, "arguments": arguments, "times": times, "seconds": seconds}
            assert self.process is not None and self.process.stdin is not None
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            return self.line()
        except TimeoutError:
            self.stop()
            return {"late": self.limit}
        except (EOFError, BrokenPipeError):
            self.stop()
            return {"error": "the process ended"}

    def start(self) -> None:
        command = [
            str(self.python),
            "-P",
            "-W",
            "ignore",
            str(HERE / "serve.py"),
            str(self.folder / f"sides/{self.name}.py"),
        ]
        here = {"PYTHONPATH": str(ROOT)} if self.name == "sfumato" else {}
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | ONE_THREAD | here
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, env=environment)
        self.version = str(self.line()["version"])

    def line(self) -> dict[str, object]:
        """The next line the process writes, within the limit."""
        assert self.process is not None and self.process.stdout is not None
        pipe, end, text = self.process.stdout.fileno(), time.monotonic() + self.limit, b""
        while not text.endswith(b"\n"):  # a line at a time goes each way, so nothing follows the newline
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError
            part = os.read(pipe, 1 << 16)
            if not part:
                raise EOFError
            text += part
        return dict(json.loads(text))

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None
