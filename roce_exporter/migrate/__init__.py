"""Other exporters' names for the facts of the catalogue: for recording rules, and to rewrite queries."""
