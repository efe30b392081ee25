"""All ordinary questions, or those about some databases: how many are answered, and as by plain DuckDB."""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.sql.ordinary.suite import DATABASES, Bench, questions_about

total: Counter[str] = Counter()
for database in sys.argv[1:] or DATABASES:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.of(database, Path(folder))
        outcomes = [bench.outcome(question) for question in questions_about(database)]
    found = Counter(one.kind for one in outcomes)
    total += found
    print(f"{database}: {dict(found)}", flush=True)
    for one in outcomes:
        if one.kind != "same":
            print(
                f"  {one.kind}: {one.question.title}\n    {one.question.sql}\n    {one.words}".replace("\n", "\n    ")
            )
print(f"{sum(total.values())} questions: {dict(total)}")
sys.exit(total["same"] < 0.97 * sum(total.values()))
