-- Pricing summary (shape of Q1)
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price, SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
  AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
FROM lineitem WHERE l_shipdate <= DATE '1996-12-01' - INTERVAL '90' DAY GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus;
-- Unshipped orders (shape of Q3, by priority)
SELECT o_orderpriority, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' GROUP BY o_orderpriority ORDER BY revenue DESC;
-- Late orders by priority (Q4)
SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority;
-- Revenue of local suppliers (Q5)
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR GROUP BY n_name ORDER BY revenue DESC;
-- Forecast of revenue change (Q6)
SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24;
-- Volume of shipping between nations (Q7)
SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM (
  SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year, l_extendedprice * (1 - l_discount) AS volume
  FROM supplier, lineitem, orders, customer, nation n1, nation n2
  WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
  AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')) AND l_shipdate BETWEEN DATE '1993-01-01' AND DATE '1996-12-31'
) AS shipping GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year;
-- National market share (Q8)
SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share FROM (
  SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
  FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
  WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
  AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1993-01-01' AND DATE '1996-12-31' AND p_type = 'ECONOMY STEEL') AS all_nations GROUP BY o_year ORDER BY o_year;
-- Profit by nation and year (Q9)
SELECT nation, o_year, SUM(amount) AS sum_profit FROM (
  SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
  FROM part, supplier, lineitem, partsupp, orders, nation
  WHERE s_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit GROUP BY nation, o_year ORDER BY nation, o_year DESC;
-- Returned items by nation (shape of Q10)
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(DISTINCT c_custkey) AS customers FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY n_name ORDER BY revenue DESC LIMIT 20;
-- Shipping modes and priority (Q12)
SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count, SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR GROUP BY l_shipmode ORDER BY l_shipmode;
-- Distribution of customers by orders, also without any (Q13)
SELECT c_count, COUNT(*) AS custdist FROM (
  SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey
) AS c_orders GROUP BY c_count HAVING COUNT(*) >= 3 ORDER BY custdist DESC, c_count DESC;
-- Effect of promotions (Q14)
SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH;
-- Best supplier by a view (Q15)
WITH revenue AS (SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' GROUP BY l_suppkey)
SELECT s_suppkey, s_name, total_revenue FROM supplier, revenue WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue) ORDER BY s_suppkey;
-- Suppliers by brand and size of public parts (Q16, no private table)
SELECT p_brand, p_type, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#2' GROUP BY p_brand, p_type ORDER BY supplier_cnt DESC, p_brand, p_type;
-- Small quantities (Q17 with the mean of public parts)
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#2' AND p_container = 'LG CASE' AND l_quantity < 0.5 * (SELECT AVG(p_size) FROM part);
-- Large orders by segment (shape of Q18)
SELECT c_mktsegment, COUNT(*) AS orders, SUM(o_totalprice) AS price FROM customer JOIN orders ON c_custkey = o_custkey WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 100) GROUP BY c_mktsegment ORDER BY c_mktsegment;
-- Discounted revenue (Q19)
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part WHERE
  (p_partkey = l_partkey AND p_brand = 'Brand#1' AND p_container IN ('SM BOX', 'MED BAG') AND l_quantity >= 1 AND l_quantity <= 11 AND p_size BETWEEN 1 AND 25)
  OR (p_partkey = l_partkey AND p_brand = 'Brand#2' AND p_container IN ('LG CASE', 'MED BAG') AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 40);
-- The same with the join outside
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem JOIN part ON p_partkey = l_partkey WHERE l_shipmode IN ('AIR', 'RAIL') AND l_shipinstruct = 'DELIVER IN PERSON'
  AND ((p_brand = 'Brand#1' AND l_quantity BETWEEN 1 AND 11) OR (p_brand = 'Brand#3' AND l_quantity BETWEEN 20 AND 30));
-- Parts in stock of suppliers (Q20 on public tables)
SELECT s_name FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'green%') AND ps_availqty > 1000) AND s_nationkey = n_nationkey ORDER BY s_name;
-- Lines that came late by supplier's nation (shape of Q21)
SELECT n_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey GROUP BY n_name ORDER BY numwait DESC, n_name;
-- Sales opportunity by country code (Q22, with a fixed balance)
SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (
  SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > 0.00 AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
) AS custsale GROUP BY cntrycode HAVING COUNT(*) > 2 ORDER BY cntrycode;
-- Revenue by region and year, rolled up
SELECT r_name, EXTRACT(YEAR FROM o_orderdate) AS y, SUM(o_totalprice) AS total FROM orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey GROUP BY ROLLUP (r_name, y) ORDER BY r_name, y;
-- Mean delay of shipping by mode
SELECT l_shipmode, AVG(l_receiptdate - l_shipdate) AS days FROM lineitem WHERE l_receiptdate - l_shipdate BETWEEN 0 AND 365 GROUP BY l_shipmode ORDER BY l_shipmode;
-- Share of late lines by mode
SELECT l_shipmode, AVG(CASE WHEN l_receiptdate > l_commitdate THEN 1 ELSE 0 END) AS late FROM lineitem GROUP BY l_shipmode ORDER BY late DESC;
-- Lines of an order
SELECT lines, COUNT(*) AS orders FROM (SELECT l_orderkey, COUNT(*) AS lines FROM lineitem GROUP BY l_orderkey) t GROUP BY lines ORDER BY lines;
-- Revenue by nation as a share of its region
WITH t AS (SELECT r_name, n_name, SUM(o_totalprice) AS total FROM orders, customer, nation, region WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey AND n_regionkey = r_regionkey GROUP BY r_name, n_name)
SELECT r_name, n_name, total / SUM(total) OVER (PARTITION BY r_name) AS share FROM t ORDER BY r_name, n_name;
-- Top brand in each year
SELECT y, p_brand FROM (SELECT year(l_shipdate) AS y, p_brand, RANK() OVER (PARTITION BY year(l_shipdate) ORDER BY SUM(l_extendedprice) DESC) AS place FROM lineitem JOIN part ON l_partkey = p_partkey GROUP BY year(l_shipdate), p_brand) t WHERE place = 1 AND y < 1997 ORDER BY y;
-- Customers with orders in two years running
SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders WHERE year(o_orderdate) = 1994) AND c_custkey IN (SELECT o_custkey FROM orders WHERE year(o_orderdate) = 1995);
-- Average order by segment and priority
SELECT c_mktsegment, o_orderpriority, AVG(o_totalprice) AS mean FROM customer JOIN orders ON o_custkey = c_custkey GROUP BY c_mktsegment, o_orderpriority ORDER BY 1, 2;
-- Orders and lines of every nation, each counted once
SELECT n_name, COUNT(DISTINCT o_orderkey) AS orders, COUNT(*) AS lines FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name ORDER BY n_name;
-- Customers above the balance of their nation's suppliers
SELECT COUNT(*) FROM customer WHERE c_acctbal > (SELECT AVG(s_acctbal) FROM supplier WHERE s_nationkey = c_nationkey);
-- Quarter over quarter
SELECT q, total, total / LAG(total) OVER (ORDER BY q) - 1 AS growth FROM (SELECT DATE_TRUNC('quarter', o_orderdate) AS q, SUM(o_totalprice) AS total FROM orders GROUP BY q) t ORDER BY q;
-- Median price by status
SELECT o_orderstatus, MEDIAN(o_totalprice) AS median FROM orders GROUP BY o_orderstatus ORDER BY o_orderstatus;
-- Open orders by age in years
SELECT DATE_DIFF('year', o_orderdate, DATE '1997-01-01') AS years, COUNT(*) AS n FROM orders WHERE o_orderstatus = 'O' GROUP BY years ORDER BY years;
-- Revenue of customers by the number of their orders
SELECT n_orders, SUM(spent) AS revenue FROM (SELECT o_custkey, COUNT(*) AS n_orders, SUM(o_totalprice) AS spent FROM orders GROUP BY o_custkey) t GROUP BY n_orders ORDER BY n_orders;
-- Cube over flags
SELECT l_returnflag, l_linestatus, l_shipmode, COUNT(*) AS n FROM lineitem GROUP BY CUBE (l_returnflag, l_linestatus, l_shipmode);
