-- How many customers are there?
SELECT COUNT(*) FROM customers;
-- Customers by country, largest first
SELECT country, COUNT(*) AS customers FROM customers GROUP BY country ORDER BY customers DESC;
-- Share of customers in each country
SELECT country, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM customers GROUP BY country ORDER BY percent DESC;
-- Sign-ups by month, with a running total
SELECT date_trunc('month', signup_date) AS month, COUNT(*) AS signups, SUM(COUNT(*)) OVER (ORDER BY date_trunc('month', signup_date)) AS so_far FROM customers GROUP BY 1 ORDER BY 1;
-- Revenue by month
SELECT date_trunc('month', ordered_at) AS month, SUM(total) AS revenue FROM orders WHERE status <> 'cancelled' GROUP BY 1 ORDER BY 1;
-- Growth of revenue over the month before
WITH monthly AS (
  SELECT date_trunc('month', ordered_at) AS month, SUM(total) AS revenue FROM orders GROUP BY 1
)
SELECT month, revenue, revenue - LAG(revenue) OVER (ORDER BY month) AS change, 100.0 * (revenue - LAG(revenue) OVER (ORDER BY month)) / LAG(revenue) OVER (ORDER BY month) AS percent
FROM monthly ORDER BY month;
-- Average value of an order by channel
SELECT channel, AVG(total) AS aov FROM orders GROUP BY channel;
-- Orders for each customer, on average
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT customer_id) AS orders_per_customer FROM orders;
-- The same by a subquery
SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t;
-- How many customers placed how many orders
SELECT n AS orders, COUNT(*) AS customers FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t GROUP BY n ORDER BY n;
-- Repeat purchase rate
SELECT COUNT(CASE WHEN n > 1 THEN 1 END) * 100.0 / COUNT(*) AS repeat_rate FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t;
-- Lifetime value by segment
SELECT c.segment, AVG(t.spent) AS ltv FROM customers c JOIN (SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id) t ON t.customer_id = c.customer_id GROUP BY c.segment;
-- Customers by tier of spending
SELECT CASE WHEN spent >= 2000 THEN 'gold' WHEN spent >= 1000 THEN 'silver' ELSE 'bronze' END AS tier, COUNT(*) AS customers
FROM (SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id) s GROUP BY tier ORDER BY tier;
-- Revenue by category of product
SELECT p.category, SUM(l.quantity * l.unit_price * (1 - l.discount)) AS revenue FROM lines l JOIN products p ON p.product_id = l.product_id GROUP BY p.category ORDER BY revenue DESC;
-- Top five brands by units sold
SELECT p.brand, SUM(l.quantity) AS units FROM lines l INNER JOIN products p USING (product_id) GROUP BY p.brand ORDER BY units DESC LIMIT 5;
-- Best product in each category
SELECT category, name, revenue FROM (
  SELECT p.category, p.name, SUM(l.quantity * l.unit_price) AS revenue, ROW_NUMBER() OVER (PARTITION BY p.category ORDER BY SUM(l.quantity * l.unit_price) DESC) AS rn
  FROM lines l JOIN products p ON l.product_id = p.product_id GROUP BY p.category, p.name
) ranked WHERE rn = 1 ORDER BY category;
-- Revenue by country through three tables
SELECT c.country, SUM(l.quantity * l.unit_price) AS revenue FROM customers c JOIN orders o ON o.customer_id = c.customer_id JOIN lines l ON l.order_id = o.order_id
WHERE o.status IN ('paid', 'shipped') GROUP BY c.country ORDER BY revenue DESC;
-- The same with comma joins
SELECT c.country, p.category, COUNT(*) AS sold FROM customers c, orders o, lines l, products p
WHERE c.customer_id = o.customer_id AND o.order_id = l.order_id AND l.product_id = p.product_id GROUP BY c.country, p.category ORDER BY c.country, p.category;
-- Subtotals by country and segment
SELECT country, segment, COUNT(*) AS n FROM customers GROUP BY ROLLUP (country, segment) ORDER BY country NULLS LAST, segment NULLS LAST;
-- A cube of orders by channel and status
SELECT channel, status, COUNT(*) AS n, SUM(total) AS revenue FROM orders GROUP BY CUBE (channel, status) ORDER BY channel, status;
-- Grouping sets with a label for totals
SELECT CASE WHEN GROUPING(channel) = 1 THEN 'all' ELSE channel END AS channel, CASE WHEN GROUPING(status) = 1 THEN 'all' ELSE status END AS status, COUNT(*) AS n
FROM orders GROUP BY GROUPING SETS ((channel), (status), ());
-- Days between sign-up and first order
SELECT AVG(date_diff('day', c.signup_date, f.first_order)) AS days FROM customers c
JOIN (SELECT customer_id, CAST(MIN(ordered_at) AS DATE) AS first_order FROM orders GROUP BY customer_id) f USING (customer_id) WHERE date_diff('day', c.signup_date, f.first_order) BETWEEN 0 AND 1000;
-- Days between consecutive orders
SELECT AVG(gap) AS days FROM (
  SELECT customer_id, date_diff('day', LAG(ordered_at) OVER (PARTITION BY customer_id ORDER BY ordered_at), ordered_at) AS gap FROM orders
) g WHERE gap BETWEEN 0 AND 800;
-- Revenue of first and of later orders
SELECT CASE WHEN rn = 1 THEN 'first' ELSE 'repeat' END AS kind, SUM(total) AS revenue FROM (
  SELECT total, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at) AS rn FROM orders
) o GROUP BY 1 ORDER BY 1;
-- Cohorts: customers active by month after their first order
WITH firsts AS (SELECT customer_id, MIN(date_trunc('month', ordered_at)) AS cohort FROM orders GROUP BY customer_id)
SELECT f.cohort, date_diff('month', f.cohort, date_trunc('month', o.ordered_at)) AS month_number, COUNT(DISTINCT o.customer_id) AS customers
FROM orders o JOIN firsts f ON f.customer_id = o.customer_id WHERE f.cohort < DATE '2023-04-01' GROUP BY 1, 2 HAVING COUNT(DISTINCT o.customer_id) >= 10 ORDER BY 1, 2;
-- Customers who never ordered
SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id WHERE o.order_id IS NULL;
-- Customers who have an order that was returned
SELECT COUNT(*) AS n FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE status = 'returned');
-- Customers without reviews
SELECT country, COUNT(*) AS silent FROM customers c WHERE NOT EXISTS (SELECT 1 FROM reviews r WHERE r.customer_id = c.customer_id) GROUP BY country ORDER BY country;
-- Bought on the web and in the store
SELECT COUNT(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(DISTINCT channel) = 3) t;
-- Orders with a coupon
SELECT coupon IS NOT NULL AS with_coupon, COUNT(*) AS orders, AVG(total) AS mean FROM orders GROUP BY 1 ORDER BY 1;
-- Most used coupons
SELECT coupon, COUNT(*) AS used FROM orders WHERE coupon IS NOT NULL GROUP BY coupon ORDER BY used DESC LIMIT 3;
-- Median and percentiles of order value
SELECT MEDIAN(total) AS p50, QUANTILE_CONT(total, 0.9) AS p90, PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY total) AS p99 FROM orders;
-- Distribution of order values in buckets of 100
SELECT FLOOR(total / 100) * 100 AS bucket, COUNT(*) AS orders FROM orders GROUP BY bucket ORDER BY bucket;
-- Orders by weekday
SELECT dayname(ordered_at) AS weekday, COUNT(*) AS orders FROM orders GROUP BY weekday;
-- Orders by hour of the day
SELECT EXTRACT(HOUR FROM ordered_at) AS hour, COUNT(*) AS orders FROM orders GROUP BY 1 ORDER BY 1;
-- Year over year by month
SELECT month(ordered_at) AS month, SUM(CASE WHEN year(ordered_at) = 2023 THEN total ELSE 0 END) AS y2023, SUM(CASE WHEN year(ordered_at) = 2024 THEN total ELSE 0 END) AS y2024,
  100.0 * (SUM(CASE WHEN year(ordered_at) = 2024 THEN total ELSE 0 END) - SUM(CASE WHEN year(ordered_at) = 2023 THEN total ELSE 0 END)) / SUM(CASE WHEN year(ordered_at) = 2023 THEN total ELSE 0 END) AS growth
FROM orders GROUP BY 1 ORDER BY 1;
-- A pivot by FILTER
SELECT channel, COUNT(*) FILTER (WHERE status = 'paid') AS paid, COUNT(*) FILTER (WHERE status = 'shipped') AS shipped, COUNT(*) FILTER (WHERE status = 'returned') AS returned FROM orders GROUP BY channel ORDER BY channel;
-- A three-month moving average
SELECT month, AVG(revenue) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth FROM (
  SELECT date_trunc('month', ordered_at) AS month, SUM(total) AS revenue FROM orders GROUP BY month) m ORDER BY month;
-- Return rate by channel
SELECT channel, ROUND(100.0 * SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) / COUNT(*), 1) AS return_rate FROM orders GROUP BY channel ORDER BY channel;
-- Average basket: lines and units for an order
SELECT AVG(lines) AS lines, AVG(units) AS units FROM (SELECT order_id, COUNT(*) AS lines, SUM(quantity) AS units FROM lines GROUP BY order_id) b;
-- Orders of more than 20 units
SELECT COUNT(*) FROM (SELECT order_id, SUM(quantity) AS units FROM lines GROUP BY order_id HAVING SUM(quantity) > 20) big;
-- Products bought together with books
SELECT p.category, COUNT(DISTINCT l.order_id) AS orders FROM lines l JOIN products p USING (product_id)
WHERE l.order_id IN (SELECT l2.order_id FROM lines l2 JOIN products p2 USING (product_id) WHERE p2.category = 'books') AND p.category <> 'books' GROUP BY p.category ORDER BY orders DESC;
-- Average stars by category
SELECT p.category, AVG(r.stars) AS stars, COUNT(r.stars) AS ratings FROM reviews r JOIN products p ON p.product_id = r.product_id GROUP BY p.category ORDER BY p.category;
-- Share of five-star reviews
SELECT AVG(CASE WHEN stars = 5 THEN 1.0 ELSE 0.0 END) AS share FROM reviews WHERE stars IS NOT NULL;
-- Complaints in the text of reviews
SELECT COUNT(*) FROM reviews WHERE body ILIKE '%broken%' OR body ILIKE '%late%';
-- Reviews by stars, with those that have none
SELECT COALESCE(CAST(stars AS VARCHAR), 'none') AS stars, COUNT(*) AS n FROM reviews GROUP BY 1 ORDER BY 1;
-- Domain of e-mail addresses
SELECT split_part(email, '@', 2) AS domain, COUNT(*) AS n FROM customers GROUP BY domain ORDER BY n DESC;
-- Age groups in the year of the data
SELECT CASE WHEN 2024 - birth_year < 30 THEN 'under 30' WHEN 2024 - birth_year BETWEEN 30 AND 49 THEN '30-49' ELSE '50+' END AS age_group, COUNT(*) AS n FROM customers GROUP BY 1 ORDER BY 1;
-- Average age today
SELECT AVG(EXTRACT(YEAR FROM CURRENT_DATE) - birth_year) AS age FROM customers;
-- Customers without an order in the last 90 days of the data
SELECT COUNT(*) FROM (SELECT customer_id, MAX(ordered_at) AS last FROM orders GROUP BY customer_id) t WHERE last < TIMESTAMP '2024-12-31 00:00:00' - INTERVAL 90 DAY;
-- Recency, frequency and money
SELECT r, f, COUNT(*) AS customers, AVG(m) AS spent FROM (
  SELECT customer_id, CASE WHEN MAX(ordered_at) >= DATE '2024-10-01' THEN 'recent' ELSE 'old' END AS r, CASE WHEN COUNT(*) >= 6 THEN 'often' ELSE 'seldom' END AS f, SUM(total) AS m FROM orders GROUP BY customer_id
) rfm GROUP BY r, f ORDER BY r, f;
-- Revenue on weekends and working days, by the public calendar
SELECT k.is_weekend, SUM(o.total) AS revenue FROM orders o JOIN calendar k ON k.day = CAST(o.ordered_at AS DATE) GROUP BY k.is_weekend ORDER BY k.is_weekend;
-- Revenue by fiscal quarter
SELECT k.fiscal_year, k.fiscal_quarter, SUM(o.total) AS revenue FROM orders o JOIN calendar k ON k.day = o.ordered_at::DATE WHERE k.fiscal_year IN (2023, 2024) GROUP BY ALL ORDER BY ALL;
-- Share of revenue from the app by country
SELECT c.country, SUM(o.total) FILTER (WHERE o.channel = 'app') / SUM(o.total) AS app_share FROM orders o JOIN customers c USING (customer_id) GROUP BY c.country ORDER BY c.country;
-- Margin by category
SELECT p.category, SUM(l.quantity * (l.unit_price - p.cost)) AS margin FROM lines l JOIN products p USING (product_id) GROUP BY p.category ORDER BY margin DESC;
-- Average discount, weighted by quantity
SELECT SUM(discount * quantity) / SUM(quantity) AS discount FROM lines;
-- Days with orders
SELECT COUNT(DISTINCT CAST(ordered_at AS DATE)) AS days FROM orders;
-- Orders a day: mean, least and most
SELECT AVG(n) AS mean, MIN(n) AS least, MAX(n) AS most FROM (SELECT date_trunc('month', ordered_at) AS month, COUNT(*) AS n FROM orders GROUP BY 1) d;
-- A union of two counts
SELECT 'customers' AS what, COUNT(*) AS n FROM customers UNION ALL SELECT 'orders', COUNT(*) FROM orders;
-- Orders above the average of their own customer
SELECT COUNT(*) FROM orders o WHERE o.total > (SELECT AVG(i.total) FROM orders i WHERE i.customer_id = o.customer_id);
-- Largest order of each customer, averaged by segment
SELECT segment, AVG(largest) AS largest FROM (SELECT c.customer_id, c.segment, MAX(o.total) AS largest FROM customers c JOIN orders o USING (customer_id) GROUP BY c.customer_id, c.segment) t GROUP BY segment ORDER BY segment;
-- Products never bought
SELECT COUNT(*) FROM products p LEFT JOIN (SELECT product_id, COUNT(*) AS n FROM lines GROUP BY product_id) s USING (product_id) WHERE s.n IS NULL;
-- How many months until the second order
SELECT AVG(months) FROM (SELECT customer_id, date_diff('month', MIN(ordered_at), MAX(ordered_at)) AS months FROM orders GROUP BY customer_id HAVING COUNT(*) = 2) t;
-- Channel of the first order
SELECT first_channel, COUNT(*) AS customers FROM (SELECT DISTINCT ON (customer_id) customer_id, channel AS first_channel FROM orders ORDER BY customer_id, ordered_at) t GROUP BY 1 ORDER BY 1;
-- Orders by week with ISO years
SELECT EXTRACT(ISOYEAR FROM ordered_at) AS y, EXTRACT(WEEK FROM ordered_at) AS w, COUNT(*) AS n FROM orders WHERE ordered_at BETWEEN '2023-01-02' AND '2023-03-27' GROUP BY 1, 2 ORDER BY 1, 2;
-- Ten per cent of orders with the highest value hold which share
SELECT SUM(CASE WHEN total >= 450 THEN total END) / SUM(total) AS share FROM orders;
