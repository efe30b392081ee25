"""Engines for tests that do one thing differently from the one inside."""

from dataclasses import dataclass


@dataclass
class Wrapped:
    """All that a curator asks of an engine, handed on."""

    inner: object

    @property
    def dialect(self):
        return self.inner.dialect

    def run(self, sql):
        return self.inner.run(sql)

    def snapshot(self):
        return self.inner.snapshot()

    def schema(self):
        return self.inner.schema()

    def check(self, sql):
        self.inner.check(sql)

    def untyped(self):
        return self.inner.untyped()

    def close(self):
        self.inner.close()
