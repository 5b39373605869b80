"""Programs around the product: a payment service to show it against, agents as users write them."""
