"""How results look where HTML is shown: in a notebook, and in a report. Text in, text out; it knows no other part."""
