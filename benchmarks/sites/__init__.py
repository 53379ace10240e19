"""Federations of real processes on this machine: equal to simulations, killed, attacked, and watched for long."""
