-- Brands of one manager by year (Q3)
SELECT dt.d_year, item.i_brand AS brand, SUM(ss_sales_price) AS sum_agg FROM date_dim dt, store_sales, item WHERE dt.d_date_sk = store_sales.ss_sold_date_sk AND store_sales.ss_item_sk = item.i_item_sk AND dt.d_moy = 11 GROUP BY dt.d_year, item.i_brand ORDER BY dt.d_year, sum_agg DESC, brand LIMIT 100;
-- Customers above the mean of returns of their state, as a rate (shape of Q1)
WITH ctr AS (SELECT sr_customer_sk, SUM(sr_return_amt) AS total FROM store_returns GROUP BY sr_customer_sk)
SELECT c.c_state, COUNT(*) AS n FROM ctr JOIN customer c ON ctr.sr_customer_sk = c.c_customer_sk WHERE ctr.total > 100 GROUP BY c.c_state ORDER BY c.c_state;
-- Ratio of sales by weekday of two years (shape of Q2)
WITH w AS (SELECT d_year, d_day_name, SUM(ws_sales_price) AS sales FROM web_sales, date_dim WHERE d_date_sk = ws_sold_date_sk GROUP BY d_year, d_day_name)
SELECT a.d_day_name, ROUND(a.sales / b.sales, 2) AS ratio FROM w a, w b WHERE a.d_day_name = b.d_day_name AND a.d_year = 2000 AND b.d_year = 1999 ORDER BY a.d_day_name;
-- Sales, returns and profit by channel, rolled up (Q5)
WITH all_sales AS (
  SELECT 'store' AS channel, ss_sales_price AS sales, ss_net_profit AS profit FROM store_sales
  UNION ALL SELECT 'web', ws_sales_price, ws_net_profit FROM web_sales)
SELECT channel, SUM(sales) AS sales, SUM(profit) AS profit FROM all_sales GROUP BY ROLLUP (channel) ORDER BY channel;
-- States whose customers buy items dearer than their category (Q6)
SELECT c.c_state AS state, COUNT(*) AS cnt FROM customer c, store_sales s, date_dim d, item i WHERE c.c_customer_sk = s.ss_customer_sk AND s.ss_sold_date_sk = d.d_date_sk AND s.ss_item_sk = i.i_item_sk AND d.d_year = 2000
  AND i.i_current_price > 1.2 * (SELECT AVG(j.i_current_price) FROM item j WHERE j.i_category = i.i_category) GROUP BY c.c_state HAVING COUNT(*) >= 10 ORDER BY cnt, c.c_state;
-- Averages for a demographic group (Q7)
SELECT i_category, AVG(ss_quantity) AS agg1, AVG(ss_list_price) AS agg2, AVG(ss_sales_price) AS agg3 FROM store_sales, customer, date_dim, item, promotion
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_customer_sk = c_customer_sk AND ss_promo_sk = p_promo_sk AND c_gender = 'M' AND (p_channel_email = 'N' OR p_channel_tv = 'N') AND d_year = 2000 GROUP BY i_category ORDER BY i_category;
-- Buckets of quantity by scalar subqueries (Q9)
SELECT CASE WHEN (SELECT COUNT(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) > 100 THEN (SELECT AVG(ss_sales_price) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) ELSE (SELECT AVG(ss_net_profit) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) END AS bucket1;
-- Demographics of customers who bought in store and on the web (Q10)
SELECT c_gender, c_marital_status, c_education, COUNT(*) AS cnt FROM customer c WHERE EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2000)
  AND EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2000) GROUP BY c_gender, c_marital_status, c_education ORDER BY 1, 2, 3;
-- Growth of web sales against store sales, by state (shape of Q11)
SELECT c_state, SUM(CASE WHEN w.total > s.total THEN 1 ELSE 0 END) AS more_web, COUNT(*) AS n FROM customer
JOIN (SELECT ss_customer_sk, SUM(ss_sales_price) AS total FROM store_sales GROUP BY ss_customer_sk) s ON s.ss_customer_sk = c_customer_sk
JOIN (SELECT ws_customer_sk, SUM(ws_sales_price) AS total FROM web_sales GROUP BY ws_customer_sk) w ON w.ws_customer_sk = c_customer_sk GROUP BY c_state ORDER BY c_state;
-- Revenue of items as a share of their class (Q12)
SELECT i_category, i_class, SUM(ws_sales_price) AS itemrevenue, SUM(ws_sales_price) * 100 / SUM(SUM(ws_sales_price)) OVER (PARTITION BY i_class) AS revenueratio
FROM web_sales, item, date_dim WHERE ws_item_sk = i_item_sk AND i_category IN ('Sports', 'Books', 'Home') AND ws_sold_date_sk = d_date_sk AND d_date BETWEEN CAST('1999-02-22' AS DATE) AND CAST('1999-12-22' AS DATE) GROUP BY i_category, i_class ORDER BY i_category, i_class;
-- Averages over combined conditions (Q13)
SELECT AVG(ss_quantity), AVG(ss_sales_price), SUM(ss_sales_price) FROM store_sales, store, customer, date_dim WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2001 AND ss_customer_sk = c_customer_sk
  AND ((c_marital_status = 'M' AND c_education = 'Advanced' AND ss_sales_price BETWEEN 50 AND 150) OR (c_marital_status = 'S' AND c_education = 'College' AND ss_sales_price BETWEEN 20 AND 100));
-- Sales by zip code prefixes and states (Q15)
SELECT SUBSTR(c_zip, 1, 3) AS zip, SUM(ws_sales_price) AS total FROM web_sales, customer, date_dim WHERE ws_customer_sk = c_customer_sk AND (SUBSTR(c_zip, 1, 3) IN ('100', '101', '120') OR c_state IN ('CA', 'GA') OR ws_sales_price > 100) AND ws_sold_date_sk = d_date_sk AND d_qoy = 2 GROUP BY 1 ORDER BY 1;
-- Orders that ship late (shape of Q16)
SELECT COUNT(DISTINCT ws_order_number) AS order_count, SUM(ws_sales_price) AS total, SUM(ws_net_profit) AS profit FROM web_sales ws1, customer WHERE ws1.ws_customer_sk = c_customer_sk AND c_state = 'GA' AND ws_ship_days > 60;
-- Statistics of quantities sold and returned (Q17)
SELECT s_state, COUNT(ss_quantity) AS n, AVG(ss_quantity) AS mean, STDDEV_SAMP(ss_quantity) AS sd, STDDEV_SAMP(ss_quantity) / AVG(ss_quantity) AS cov FROM store_sales, store, date_dim WHERE d_qoy = 1 AND d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk GROUP BY s_state ORDER BY s_state;
-- Demographic averages, rolled up (Q18)
SELECT c_gender, c_state, AVG(ss_quantity) AS a1, AVG(ss_net_profit) AS a4 FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk AND c_birth_month IN (1, 6, 8, 9, 12, 2) GROUP BY ROLLUP (c_gender, c_state) ORDER BY c_gender, c_state;
-- Sales of a manager's brands where zip codes differ (Q19)
SELECT i_brand, SUM(ss_sales_price) AS ext_price FROM date_dim, store_sales, item, customer, store WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id BETWEEN 1 AND 5 AND ss_customer_sk = c_customer_sk AND c_state <> s_state AND ss_store_sk = s_store_sk GROUP BY i_brand ORDER BY ext_price DESC, i_brand;
-- Sales before and after a date (Q21)
SELECT s_state, SUM(CASE WHEN CAST(d_date AS DATE) < CAST('2000-03-11' AS DATE) THEN ss_quantity ELSE 0 END) AS before, SUM(CASE WHEN d_date >= DATE '2000-03-11' THEN ss_quantity ELSE 0 END) AS after FROM store_sales, store, date_dim
WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d_date_sk AND d_date BETWEEN DATE '2000-03-11' - INTERVAL 30 DAY AND DATE '2000-03-11' + INTERVAL 30 DAY GROUP BY s_state ORDER BY s_state;
-- Best customers' share of one month's sales (shape of Q23)
WITH best AS (SELECT ss_customer_sk FROM store_sales GROUP BY ss_customer_sk HAVING SUM(ss_quantity * ss_sales_price) > 30000)
SELECT SUM(ws_quantity * ws_sales_price) AS sales FROM web_sales, date_dim WHERE d_moy <= 6 AND ws_sold_date_sk = d_date_sk AND ws_customer_sk IN (SELECT ss_customer_sk FROM best);
-- Net profit by category, with grouping sets (Q27)
SELECT i_category, s_state, GROUPING(s_state) AS g_state, AVG(ss_quantity) AS agg1, AVG(ss_list_price) AS agg2 FROM store_sales, item, store, date_dim WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND d_year = 2000 GROUP BY ROLLUP (i_category, s_state) ORDER BY i_category, s_state;
-- List prices in six bands (Q28)
SELECT * FROM (SELECT AVG(ss_list_price) AS b1_lp, COUNT(ss_list_price) AS b1_cnt, COUNT(DISTINCT ss_list_price) AS b1_cntd FROM store_sales WHERE ss_quantity BETWEEN 0 AND 5) b1,
  (SELECT AVG(ss_list_price) AS b2_lp, COUNT(ss_list_price) AS b2_cnt FROM store_sales WHERE ss_quantity BETWEEN 6 AND 10) b2;
-- Excess discounts (Q32 on the mean of the public price)
SELECT SUM(ws_sales_price) AS excess FROM web_sales, item WHERE i_item_sk = ws_item_sk AND ws_sales_price > 1.3 * (SELECT AVG(i_current_price) FROM item WHERE i_item_sk = ws_item_sk);
-- Items of one category over two channels (Q33)
WITH ss AS (SELECT i_manager_id, SUM(ss_sales_price) AS total FROM store_sales, item WHERE ss_item_sk = i_item_sk AND i_category = 'Books' GROUP BY i_manager_id), ws AS (SELECT i_manager_id, SUM(ws_sales_price) AS total FROM web_sales, item WHERE ws_item_sk = i_item_sk AND i_category = 'Books' GROUP BY i_manager_id)
SELECT i_manager_id, SUM(total) AS total FROM (SELECT * FROM ss UNION ALL SELECT * FROM ws) t GROUP BY i_manager_id ORDER BY total;
-- Demographics of dependants (Q35)
SELECT c_dep_count, COUNT(*) AS cnt, AVG(c_birth_year) AS mean, MAX(c_birth_year) AS latest FROM customer c WHERE EXISTS (SELECT 1 FROM store_sales WHERE ss_customer_sk = c.c_customer_sk) GROUP BY c_dep_count ORDER BY c_dep_count NULLS FIRST;
-- plain: SELECT c_dep_count, COUNT(*) AS cnt, AVG(c_birth_year) AS mean, MAX(c_birth_year) AS latest FROM customer c WHERE c_dep_count IS NOT NULL AND EXISTS (SELECT 1 FROM store_sales WHERE ss_customer_sk = c.c_customer_sk) GROUP BY c_dep_count ORDER BY c_dep_count NULLS FIRST
-- Margins in a hierarchy with a rank in each level (Q36)
SELECT SUM(ss_net_profit) / SUM(ss_sales_price) AS gross_margin, i_category, i_class, GROUPING(i_category) + GROUPING(i_class) AS lochierarchy,
  RANK() OVER (PARTITION BY GROUPING(i_category) + GROUPING(i_class), CASE WHEN GROUPING(i_class) = 0 THEN i_category END ORDER BY SUM(ss_net_profit) / SUM(ss_sales_price)) AS place
FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY ROLLUP (i_category, i_class) ORDER BY lochierarchy DESC, i_category, place;
-- Customers who bought in both channels (Q38)
SELECT COUNT(*) FROM (SELECT DISTINCT ss_customer_sk FROM store_sales INTERSECT SELECT DISTINCT ws_customer_sk FROM web_sales) hot;
-- The same by two semi-joins
SELECT COUNT(*) FROM customer WHERE c_customer_sk IN (SELECT ss_customer_sk FROM store_sales) AND c_customer_sk IN (SELECT ws_customer_sk FROM web_sales);
-- Sales before and after by item, with returns taken off (Q40)
SELECT i_class, SUM(CASE WHEN d_date < DATE '2000-03-11' THEN ss_sales_price - COALESCE(sr_return_amt, 0) ELSE 0 END) AS before, SUM(CASE WHEN d_date >= DATE '2000-03-11' THEN ss_sales_price - COALESCE(sr_return_amt, 0) ELSE 0 END) AS after
FROM store_sales LEFT OUTER JOIN store_returns ON ss_ticket_number = sr_ticket_number AND ss_customer_sk = sr_customer_sk, item, date_dim WHERE i_item_sk = ss_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_class ORDER BY i_class;
-- Sales by category and year (Q42)
SELECT dt.d_year, item.i_category, SUM(ss_sales_price) FROM date_dim dt, store_sales, item WHERE dt.d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 1 AND dt.d_moy = 11 GROUP BY dt.d_year, i_category ORDER BY 3 DESC, 1, 2;
-- Weekdays by store (Q43)
SELECT s_store_name, SUM(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price ELSE NULL END) AS sun_sales, SUM(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price ELSE NULL END) AS mon_sales FROM date_dim, store_sales, store WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk GROUP BY s_store_name ORDER BY s_store_name;
-- Best and worst class by profit (Q44)
SELECT a.i_class AS best, b.i_class AS worst FROM (SELECT i_class, RANK() OVER (ORDER BY profit DESC) AS place FROM (SELECT i_class, AVG(ss_net_profit) AS profit FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY i_class) x) a
JOIN (SELECT i_class, RANK() OVER (ORDER BY profit) AS place FROM (SELECT i_class, AVG(ss_net_profit) AS profit FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY i_class) y) b ON a.place = b.place WHERE a.place <= 2 ORDER BY a.place;
-- Months that deviate from the year's mean (Q47)
WITH v1 AS (SELECT i_category, d_year, d_moy, SUM(ss_sales_price) AS sum_sales, AVG(SUM(ss_sales_price)) OVER (PARTITION BY i_category, d_year) AS avg_monthly_sales FROM item, store_sales, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_category, d_year, d_moy)
SELECT i_category, d_year, d_moy, sum_sales - avg_monthly_sales AS deviation FROM v1 WHERE d_year = 2000 AND ABS(sum_sales - avg_monthly_sales) / avg_monthly_sales > 0.1 ORDER BY 4, 1, 2, 3;
-- Quantity under combined conditions (Q48)
SELECT SUM(ss_quantity) FROM store_sales, customer, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_year = 2000 AND ss_customer_sk = c_customer_sk AND ((c_marital_status = 'M' AND ss_sales_price BETWEEN 100 AND 150) OR (c_marital_status = 'D' AND ss_sales_price BETWEEN 50 AND 100));
-- Return rate of categories (Q49)
SELECT i_category, COUNT(sr_ticket_number) * 1.0 / COUNT(*) AS return_ratio FROM store_sales LEFT JOIN store_returns ON ss_ticket_number = sr_ticket_number AND ss_customer_sk = sr_customer_sk JOIN item ON ss_item_sk = i_item_sk GROUP BY i_category ORDER BY return_ratio;
-- Days until a return, in bands (Q50)
SELECT s_store_name, SUM(CASE WHEN sr_returned_date_sk - ss_sold_date_sk <= 30 THEN 1 ELSE 0 END) AS d30, SUM(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 30 AND sr_returned_date_sk - ss_sold_date_sk <= 60 THEN 1 ELSE 0 END) AS d60
FROM store_sales, store_returns, store WHERE ss_ticket_number = sr_ticket_number AND ss_customer_sk = sr_customer_sk AND ss_store_sk = s_store_sk GROUP BY s_store_name ORDER BY s_store_name;
-- Cumulative sales by quarter (Q51)
SELECT d_year, d_qoy, SUM(SUM(ws_sales_price)) OVER (ORDER BY d_year, d_qoy ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cume_sales FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk GROUP BY d_year, d_qoy ORDER BY d_year, d_qoy;
-- Segments of customers by revenue (Q54)
WITH my_revenue AS (SELECT ss_customer_sk, SUM(ss_sales_price) AS revenue FROM store_sales GROUP BY ss_customer_sk), segments AS (SELECT CAST(FLOOR(revenue / 500) AS INT) AS segment FROM my_revenue)
SELECT segment, COUNT(*) AS num_customers, segment * 500 AS segment_base FROM segments GROUP BY segment ORDER BY segment;
-- Week over week of two years (Q59)
WITH wss AS (SELECT d_year, d_moy, SUM(ss_sales_price) AS sales FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk GROUP BY d_year, d_moy)
SELECT y.d_moy, y.sales / x.sales AS ratio FROM wss y JOIN wss x ON y.d_moy = x.d_moy AND y.d_year = x.d_year + 1 WHERE y.d_year = 2000 ORDER BY y.d_moy;
-- Promotional and all sales (Q61)
SELECT promotions, total, CAST(promotions AS DOUBLE) / total * 100 AS percent FROM (SELECT SUM(ss_sales_price) AS promotions FROM store_sales, promotion WHERE ss_promo_sk = p_promo_sk AND p_channel_email = 'Y') p, (SELECT SUM(ss_sales_price) AS total FROM store_sales) a;
-- Days to ship, in bands (Q62)
SELECT i_class, SUM(CASE WHEN ws_ship_days <= 30 THEN 1 ELSE 0 END) AS "30 days", SUM(CASE WHEN ws_ship_days > 30 AND ws_ship_days <= 60 THEN 1 ELSE 0 END) AS "31-60 days", SUM(CASE WHEN ws_ship_days > 60 THEN 1 ELSE 0 END) AS ">60 days" FROM web_sales, item WHERE ws_item_sk = i_item_sk GROUP BY i_class ORDER BY i_class;
-- Stores whose items sell below a tenth of the mean (shape of Q65)
WITH sa AS (SELECT ss_store_sk, i_class, SUM(ss_sales_price) AS revenue FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY ss_store_sk, i_class)
SELECT s_store_name, sa.i_class, sa.revenue FROM store, sa, (SELECT ss_store_sk, AVG(revenue) AS ave FROM sa GROUP BY ss_store_sk) sb WHERE sb.ss_store_sk = sa.ss_store_sk AND sa.revenue <= sb.ave AND s_store_sk = sa.ss_store_sk ORDER BY 1, 2;
-- A cube of sales with a rank in each category (Q67)
SELECT * FROM (SELECT i_category, i_class, d_year, sumsales, RANK() OVER (PARTITION BY i_category ORDER BY sumsales DESC) AS rk FROM (SELECT i_category, i_class, d_year, SUM(COALESCE(ss_sales_price * ss_quantity, 0)) AS sumsales FROM store_sales, date_dim, item WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk GROUP BY ROLLUP (i_category, i_class, d_year)) dw1) dw2 WHERE rk <= 3 ORDER BY i_category, rk;
-- Customers in store but not on the web (Q69)
SELECT c_gender, c_education, COUNT(*) AS cnt FROM customer c WHERE EXISTS (SELECT * FROM store_sales WHERE c.c_customer_sk = ss_customer_sk) AND NOT EXISTS (SELECT * FROM web_sales WHERE c.c_customer_sk = ws_customer_sk) GROUP BY c_gender, c_education ORDER BY 1, 2;
-- Brands by meal time (Q71)
SELECT i_brand, FLOOR(ss_sold_time / 3600) AS t_hour, SUM(ss_sales_price) AS ext_price FROM store_sales, item WHERE ss_item_sk = i_item_sk AND (ss_sold_time BETWEEN 21600 AND 36000 OR ss_sold_time BETWEEN 61200 AND 72000) GROUP BY i_brand, t_hour ORDER BY i_brand, t_hour;
-- Frequent shoppers by county (shape of Q73)
SELECT cnt, COUNT(*) AS customers FROM (SELECT ss_customer_sk, COUNT(*) AS cnt FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_year IN (1999, 2000) GROUP BY ss_customer_sk) dj WHERE cnt BETWEEN 1 AND 5 GROUP BY cnt ORDER BY cnt;
-- Sales missing a promotion (Q76)
SELECT channel, missing, COUNT(*) AS sales_cnt, SUM(price) AS sales_amt FROM (SELECT 'store' AS channel, CASE WHEN ss_promo_sk IS NULL THEN 'yes' ELSE 'no' END AS missing, ss_sales_price AS price FROM store_sales UNION ALL SELECT 'web', 'no', ws_sales_price FROM web_sales) foo GROUP BY channel, missing ORDER BY channel, missing;
-- Shoppers at half hours (Q88)
SELECT * FROM (SELECT COUNT(*) AS h8 FROM store_sales WHERE ss_sold_time BETWEEN 30600 AND 32400) s1, (SELECT COUNT(*) AS h9 FROM store_sales WHERE ss_sold_time BETWEEN 32400 AND 34200) s2;
-- Classes whose month deviates (Q89)
SELECT * FROM (SELECT i_category, d_moy, SUM(ss_sales_price) AS sum_sales, AVG(SUM(ss_sales_price)) OVER (PARTITION BY i_category) AS avg_monthly FROM item, store_sales, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk GROUP BY i_category, d_moy) tmp1 WHERE CASE WHEN avg_monthly <> 0 THEN ABS(sum_sales - avg_monthly) / avg_monthly ELSE NULL END > 0.1 ORDER BY sum_sales - avg_monthly, 1;
-- Morning over evening (Q90)
SELECT CAST(amc AS DECIMAL(15, 4)) / CAST(pmc AS DECIMAL(15, 4)) AS am_pm_ratio FROM (SELECT COUNT(*) AS amc FROM store_sales WHERE ss_sold_time BETWEEN 28800 AND 36000) a, (SELECT COUNT(*) AS pmc FROM store_sales WHERE ss_sold_time BETWEEN 68400 AND 75600) p;
-- Overlap of store and web, by a full join (Q97)
WITH ssci AS (SELECT ss_customer_sk AS customer_sk FROM store_sales GROUP BY ss_customer_sk), wsci AS (SELECT ws_customer_sk AS customer_sk FROM web_sales GROUP BY ws_customer_sk)
SELECT SUM(CASE WHEN ssci.customer_sk IS NOT NULL AND wsci.customer_sk IS NULL THEN 1 ELSE 0 END) AS store_only, SUM(CASE WHEN ssci.customer_sk IS NULL AND wsci.customer_sk IS NOT NULL THEN 1 ELSE 0 END) AS web_only, SUM(CASE WHEN ssci.customer_sk IS NOT NULL AND wsci.customer_sk IS NOT NULL THEN 1 ELSE 0 END) AS both FROM ssci FULL OUTER JOIN wsci ON ssci.customer_sk = wsci.customer_sk;
-- Revenue share of items in their class (Q98)
SELECT i_category, i_class, SUM(ss_sales_price) * 100.0 / SUM(SUM(ss_sales_price)) OVER (PARTITION BY i_category) AS revenueratio FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY i_category, i_class ORDER BY 1, 2;
