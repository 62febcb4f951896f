"""What a query would do if certain indexes existed: sampled, imagined, and put before the planner itself. Nothing is written."""
