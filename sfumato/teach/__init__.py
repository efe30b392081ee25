"""Teaching material: classical accountants, figures, attacks and demos. The curator uses none of it."""
