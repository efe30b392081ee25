"""`make mutants`: plants every bug, looks for it with the auditor, and looks again without it. Ends with 1 if one is
missed, or if there is an alarm without a bug."""

import sys
import time

from tests.mutants.plant import every


def main() -> int:
    began, missed = time.monotonic(), []
    mutants = every()
    for one in mutants:
        start = time.monotonic()
        alarm = one.audit().violated
        with one.planted():
            found = one.audit()
        spent = time.monotonic() - start
        right = found.violated and not alarm
        missed += [] if right else [one.number]
        word = "caught" if right else "FALSE ALARM" if alarm else "MISSED"
        print(f"{one.number:3}  {word:11}  {one.tier:9}  {spent:6.2f} s  {one.name}", flush=True)
    print(f"\n{len(mutants) - len(missed)} of {len(mutants)} caught, in {time.monotonic() - began:.0f} s")
    return int(bool(missed) or len(mutants) < 30)


if __name__ == "__main__":
    sys.exit(main())
