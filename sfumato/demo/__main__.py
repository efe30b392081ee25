"""`python -m sfumato.demo` is `sfumato demo`."""

import sys

from sfumato.demo.clinic_tour import main

sys.exit(main())
