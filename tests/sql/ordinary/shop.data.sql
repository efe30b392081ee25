CREATE MACRO r(i, salt, n) AS CAST(hash(i * 1000 + salt) % n AS INTEGER);
CREATE TABLE products AS SELECT i AS product_id, 'Product ' || i AS name, ['books', 'games', 'garden', 'kitchen', 'music', 'toys'][1 + i % 6] AS category,
  'Brand ' || chr(CAST(65 + i % 5 AS INTEGER)) AS brand, 5.5 + (i * 7) % 90 AS price, 3 + (i * 5) % 40 AS cost FROM range(1, 31) t(i);
CREATE TABLE calendar AS SELECT CAST(DATE '2023-01-01' + CAST(i AS INTEGER) AS DATE) AS day, CAST(year(DATE '2023-01-01' + CAST(i AS INTEGER)) AS INTEGER) AS fiscal_year,
  'FQ' || quarter(DATE '2023-01-01' + CAST(i AS INTEGER)) AS fiscal_quarter, isodow(DATE '2023-01-01' + CAST(i AS INTEGER)) >= 6 AS is_weekend FROM range(731) t(i);
CREATE TABLE customers AS SELECT i AS customer_id, 'c' || i || '@' || ['mail.com', 'web.de', 'post.org'][1 + r(i, 1, 3)] AS email, ['DE', 'FR', 'IT', 'ES'][1 + r(i, 2, 4)] AS country,
  ['consumer', 'corporate', 'home office'][1 + r(i, 3, 3)] AS segment, DATE '2022-01-01' + r(i, 4, 720) AS signup_date, 1950 + r(i, 5, 55) AS birth_year,
  CASE WHEN r(i, 6, 5) > 0 THEN ['ads', 'search', 'friend'][1 + r(i, 7, 3)] END AS source, r(i, 8, 4) > 0 AS newsletter FROM range(1, 401) t(i);
CREATE TABLE orders AS SELECT row_number() OVER (ORDER BY i, j) AS order_id, i AS customer_id,
  TIMESTAMP '2023-01-01 00:00:00' + INTERVAL 1 MINUTE * r(i * 50 + j, 9, 1051200) AS ordered_at, ['paid', 'shipped', 'returned', 'cancelled'][1 + r(i * 50 + j, 10, 4)] AS status,
  ['web', 'app', 'store'][1 + r(i * 50 + j, 11, 3)] AS channel, CASE WHEN r(i * 50 + j, 12, 3) = 0 THEN 'SAVE' || (5 * (1 + r(i * 50 + j, 13, 3))) END AS coupon,
  r(i * 50 + j, 14, 1200) / 100.0 AS shipping, 5 + r(i * 50 + j, 15, 49500) / 100.0 AS total FROM range(1, 401) t(i), range(12) u(j) WHERE j <= r(i, 16, 12);
CREATE TABLE lines AS SELECT order_id * 10 + k AS line_id, order_id, 1 + r(order_id * 10 + k, 17, 30) AS product_id, 1 + r(order_id * 10 + k, 18, 9) AS quantity,
  1 + r(order_id * 10 + k, 19, 9900) / 100.0 AS unit_price, r(order_id * 10 + k, 20, 4) / 10.0 AS discount FROM orders, range(4) u(k) WHERE k <= r(order_id, 21, 4);
CREATE TABLE reviews AS SELECT order_id AS review_id, customer_id, 1 + r(order_id, 22, 30) AS product_id, CASE WHEN r(order_id, 23, 8) > 0 THEN 1 + r(order_id, 24, 5) END AS stars,
  ['great value', 'Good, but late', 'broken on arrival', 'would buy again', 'too expensive'][1 + r(order_id, 25, 5)] AS body, CAST(ordered_at AS DATE) + r(order_id, 26, 20) AS reviewed_on
  FROM orders WHERE r(order_id, 27, 2) = 0;
