"""The Helm chart: what it renders, for which Kubernetes, and what it refuses."""
