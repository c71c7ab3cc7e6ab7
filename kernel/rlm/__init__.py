"""What cells get as `rlm`: sub-agents and the host's other services."""
