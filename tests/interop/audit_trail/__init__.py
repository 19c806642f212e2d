"""What was done, as policies: record, recommend, enforce, do it again; and then without one of the grants."""
