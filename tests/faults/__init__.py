"""What the fault tests are made of: producers in processes of their own, and a stage per bus."""
