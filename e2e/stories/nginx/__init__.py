"""Stories about Ingresses of ingress-nginx."""
