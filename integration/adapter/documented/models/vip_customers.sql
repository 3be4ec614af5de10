select id as customer_id from range(3)
