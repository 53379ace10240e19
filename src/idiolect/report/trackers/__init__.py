"""Internal: runs as MLflow and TensorBoard show them."""
