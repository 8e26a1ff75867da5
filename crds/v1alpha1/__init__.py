"""The kinds of `apisix.apache.org/v1alpha1`, as 2.x defines them. Their CRDs are those of 2.x: none is shipped."""
