"""`python -m sfumato.teach.demo` is `sfumato demo`."""

import sys

from sfumato.teach.demo.clinic_tour import main

sys.exit(main())
