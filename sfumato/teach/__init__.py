"""Material that teaches: classical accountants, figures, attacks, demos. The curator needs none of it."""
