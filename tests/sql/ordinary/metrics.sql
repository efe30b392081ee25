-- A simple metric: active subscriptions
SELECT COUNT(*) AS active_subscriptions FROM subscriptions WHERE ended_on IS NULL;
-- Monthly recurring revenue of active subscriptions
SELECT SUM(mrr) AS mrr, SUM(mrr) * 12 AS arr FROM subscriptions WHERE ended_on IS NULL OR ended_on > DATE '2024-01-01';
-- Recurring revenue by plan
SELECT p.plan, SUM(s.mrr) AS mrr, COUNT(*) AS subscriptions FROM subscriptions s LEFT JOIN plans p ON s.plan_id = p.plan_id WHERE s.ended_on IS NULL GROUP BY p.plan ORDER BY p.plan;
-- Revenue of an account, on average
SELECT SUM(mrr) / COUNT(DISTINCT account_id) AS arpa FROM subscriptions WHERE ended_on IS NULL;
-- New subscriptions by month, a time spine filling gaps
SELECT t.month_start, COALESCE(n.new_subscriptions, 0) AS new_subscriptions FROM time_spine t LEFT JOIN (SELECT DATE_TRUNC('month', started_on) AS month_start, COUNT(*) AS new_subscriptions FROM subscriptions GROUP BY 1) n ON n.month_start = t.month_start ORDER BY t.month_start;
-- Subscriptions active at each month's start: a range join with the spine
SELECT t.month_start, COUNT(s.subscription_id) AS active FROM time_spine t JOIN subscriptions s ON s.started_on <= t.month_start AND (s.ended_on IS NULL OR s.ended_on > t.month_start) GROUP BY t.month_start ORDER BY t.month_start;
-- New, churned and net by month
WITH new AS (SELECT DATE_TRUNC('month', started_on) AS month, SUM(mrr) AS mrr FROM subscriptions GROUP BY 1), lost AS (SELECT DATE_TRUNC('month', ended_on) AS month, SUM(mrr) AS mrr FROM subscriptions WHERE ended_on >= '2023-04-01' GROUP BY 1)
SELECT new.month, new.mrr AS gained, lost.mrr AS lost, new.mrr - COALESCE(lost.mrr, 0) AS net FROM new LEFT JOIN lost ON new.month = lost.month ORDER BY new.month;
-- Churn rate: ended over all
SELECT COUNT(ended_on) * 1.0 / NULLIF(COUNT(*), 0) AS churn_rate FROM subscriptions;
-- Churn by industry and region
SELECT a.industry, a.region, AVG(CASE WHEN s.ended_on IS NOT NULL THEN 1.0 ELSE 0.0 END) AS churn FROM subscriptions s JOIN accounts a ON a.account_id = s.account_id GROUP BY a.industry, a.region ORDER BY 1, 2;
-- Lifetime of subscriptions that ended
SELECT AVG(DATE_DIFF('day', started_on, ended_on)) AS days FROM subscriptions WHERE DATE_DIFF('day', started_on, ended_on) BETWEEN 0 AND 1000;
-- Median lifetime by plan
SELECT p.plan, MEDIAN(CLAMP(DATE_DIFF('day', s.started_on, s.ended_on), 0, 1000)) AS days FROM subscriptions s JOIN plans p USING (plan_id) WHERE s.ended_on IS NOT NULL GROUP BY p.plan ORDER BY p.plan;
-- plain: SELECT p.plan, MEDIAN(DATE_DIFF('day', s.started_on, s.ended_on)) AS days FROM subscriptions s JOIN plans p USING (plan_id) WHERE s.ended_on IS NOT NULL GROUP BY p.plan ORDER BY p.plan
-- Discount against the list price
SELECT p.plan, 1 - SUM(s.mrr) / SUM(p.list_price) AS discount FROM subscriptions s JOIN plans p USING (plan_id) GROUP BY p.plan ORDER BY p.plan;
-- A ratio metric: error rate by week
SELECT DATE_TRUNC('week', day) AS week, SUM(errors) / NULLIF(SUM(calls), 0) AS error_rate FROM usage GROUP BY 1 ORDER BY 1;
-- A derived metric: growth of calls week over week
SELECT week, calls / LAG(calls) OVER (ORDER BY week) - 1 AS growth FROM (SELECT DATE_TRUNC('week', day) AS week, SUM(calls) AS calls FROM usage GROUP BY 1) w ORDER BY week;
-- A cumulative metric
SELECT day, SUM(SUM(calls)) OVER (ORDER BY day) AS calls_to_date FROM usage GROUP BY day ORDER BY day;
-- A cumulative metric that restarts each month
SELECT day, SUM(calls) OVER (PARTITION BY DATE_TRUNC('month', day) ORDER BY day) AS month_to_date FROM (SELECT day, SUM(calls) AS calls FROM usage GROUP BY day) d ORDER BY day;
-- A rolling window of seven days
SELECT day, SUM(calls) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS calls_7d, AVG(calls) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS mean_7d FROM (SELECT day, SUM(calls) AS calls FROM usage GROUP BY day) d ORDER BY day;
-- Offset: this month against the last
SELECT SUM(CASE WHEN day >= '2024-02-01' THEN calls END) AS february, SUM(CASE WHEN day < '2024-02-01' THEN calls END) AS january, SUM(CASE WHEN day >= '2024-02-01' THEN calls END) * 1.0 / SUM(CASE WHEN day < '2024-02-01' THEN calls END) AS ratio FROM usage;
-- Active accounts by week
SELECT DATE_TRUNC('week', day) AS week, COUNT(DISTINCT account_id) AS active_accounts FROM usage WHERE calls > 0 GROUP BY 1 ORDER BY 1;
-- Share of accounts that are active
SELECT COUNT(DISTINCT u.account_id) * 100.0 / COUNT(DISTINCT a.account_id) AS active_percent FROM accounts a LEFT JOIN usage u ON u.account_id = a.account_id AND u.day >= DATE '2024-02-01';
-- Calls of an account and day, by region
SELECT a.region, AVG(u.calls) AS calls, SUM(u.calls) / COUNT(DISTINCT u.account_id) AS per_account FROM usage u JOIN accounts a USING (account_id) GROUP BY a.region ORDER BY a.region;
-- Power users: accounts with usage on ten days or more
SELECT COUNT(*) AS power_accounts FROM (SELECT account_id FROM usage GROUP BY account_id HAVING COUNT(DISTINCT day) >= 15) t;
-- Usage percentiles of accounts
SELECT QUANTILE_CONT(calls, 0.5) AS p50, QUANTILE_CONT(calls, 0.9) AS p90, QUANTILE_CONT(calls, 0.99) AS p99 FROM (SELECT account_id, SUM(calls) AS calls FROM usage GROUP BY account_id) t;
-- Latency percentiles by week
SELECT DATE_TRUNC('week', day) AS week, QUANTILE_CONT(ms, 0.95) AS p95 FROM usage GROUP BY week ORDER BY week;
-- Average latency weighted by calls
SELECT SUM(ms * calls) / SUM(calls) AS weighted_ms FROM usage;
-- Accounts by size band
SELECT CASE WHEN employees < 50 THEN 'small' WHEN employees < 200 THEN 'medium' ELSE 'large' END AS size, COUNT(*) AS accounts FROM accounts GROUP BY size ORDER BY size;
-- Revenue by size band with a total
SELECT COALESCE(size, 'total') AS size, mrr FROM (SELECT CASE WHEN a.employees < 50 THEN 'small' WHEN a.employees < 200 THEN 'medium' ELSE 'large' END AS size, SUM(s.mrr) AS mrr FROM accounts a JOIN subscriptions s USING (account_id) GROUP BY ROLLUP (1)) t ORDER BY size;
-- Concentration: revenue of accounts above 400 a month
SELECT SUM(CASE WHEN mrr > 400 THEN mrr ELSE 0 END) / SUM(mrr) AS share FROM (SELECT account_id, SUM(mrr) AS mrr FROM subscriptions GROUP BY account_id) t;
-- Expansion: accounts with more than one subscription
SELECT AVG(CASE WHEN n > 1 THEN 1.0 ELSE 0.0 END) AS multi FROM (SELECT account_id, COUNT(*) AS n FROM subscriptions GROUP BY account_id) t;
-- Upgrades: a later subscription on a higher plan
SELECT COUNT(DISTINCT a.account_id) AS upgraded FROM subscriptions a JOIN subscriptions b ON a.account_id = b.account_id AND b.started_on > a.started_on AND b.plan_id > a.plan_id;
-- First plan of accounts
SELECT p.plan, COUNT(*) AS accounts FROM (SELECT account_id, FIRST(plan_id ORDER BY started_on) AS plan_id FROM subscriptions GROUP BY account_id) f JOIN plans p USING (plan_id) GROUP BY p.plan ORDER BY p.plan;
-- Days from creation to the first subscription
SELECT region, AVG(CLAMP(days, 0, 800)) AS days FROM (SELECT a.account_id, a.region, DATE_DIFF('day', a.created_on, MIN(s.started_on)) AS days FROM accounts a JOIN subscriptions s ON s.account_id = a.account_id GROUP BY a.account_id, a.region, a.created_on) t GROUP BY region ORDER BY region;
-- plain: SELECT region, AVG(GREATEST(days, 0)) AS days FROM (SELECT a.account_id, a.region, DATE_DIFF('day', a.created_on, MIN(s.started_on)) AS days FROM accounts a JOIN subscriptions s ON s.account_id = a.account_id GROUP BY a.account_id, a.region, a.created_on) t GROUP BY region ORDER BY region
-- Conversion metric: accounts with a subscription within 90 days
SELECT COUNT(DISTINCT CASE WHEN s.started_on BETWEEN a.created_on AND a.created_on + 90 THEN a.account_id END) * 1.0 / COUNT(DISTINCT a.account_id) AS conversion FROM accounts a LEFT JOIN subscriptions s ON s.account_id = a.account_id;
-- Cohorts by quarter of creation
SELECT DATE_TRUNC('quarter', a.created_on) AS cohort, COUNT(DISTINCT a.account_id) AS accounts, COUNT(DISTINCT CASE WHEN s.ended_on IS NULL THEN s.account_id END) AS still_active FROM accounts a LEFT JOIN subscriptions s USING (account_id) GROUP BY cohort ORDER BY cohort;
-- Tickets by priority and whether closed
SELECT priority, closed_at IS NOT NULL AS closed, COUNT(*) AS tickets FROM tickets GROUP BY priority, closed ORDER BY priority, closed;
-- Time to close, in hours
SELECT priority, AVG(DATE_DIFF('minute', opened_at, closed_at) / 60.0) AS hours FROM tickets WHERE DATE_DIFF('minute', opened_at, closed_at) BETWEEN 0 AND 10000 GROUP BY priority ORDER BY priority;
-- Time to close in seconds by EPOCH
SELECT MEDIAN(CLAMP(EPOCH(closed_at) - EPOCH(opened_at), 0, 500000)) AS seconds FROM tickets WHERE closed_at IS NOT NULL;
-- plain: SELECT MEDIAN(EPOCH(closed_at) - EPOCH(opened_at)) AS seconds FROM tickets WHERE closed_at IS NOT NULL
-- Closed within a day
SELECT 100.0 * COUNT_IF(closed_at <= opened_at + INTERVAL 1 DAY) / COUNT(*) AS sla FROM tickets;
-- plain: SELECT 100.0 * COUNT(*) FILTER (WHERE closed_at <= opened_at + INTERVAL 1 DAY) / COUNT(*) AS sla FROM tickets
-- Tickets an account, also those without
SELECT AVG(n) FROM (SELECT a.account_id, COUNT(t.ticket_id) AS n FROM accounts a LEFT JOIN tickets t ON t.account_id = a.account_id GROUP BY a.account_id) x;
-- Satisfaction by priority and month
SELECT DATE_TRUNC('month', opened_at) AS month, priority, AVG(csat) AS csat, COUNT(csat) AS answers FROM tickets GROUP BY month, priority ORDER BY month, priority;
-- Response rate of surveys
SELECT COUNT(csat) / COUNT(*)::DOUBLE AS response_rate FROM tickets;
-- Top box satisfaction
SELECT COUNT(*) FILTER (WHERE csat >= 4) * 1.0 / COUNT(*) FILTER (WHERE csat IS NOT NULL) AS top_box FROM tickets;
-- Tickets by weekday and hour block
SELECT ISODOW(opened_at) AS dow, HOUR(opened_at) // 6 AS block, COUNT(*) AS n FROM tickets GROUP BY dow, block ORDER BY dow, block;
-- Backlog by day: opened so far minus closed so far
WITH o AS (SELECT CAST(opened_at AS DATE) AS day, COUNT(*) AS n FROM tickets GROUP BY 1), c AS (SELECT CAST(closed_at AS DATE) AS day, COUNT(*) AS n FROM tickets WHERE closed_at IS NOT NULL GROUP BY 1)
SELECT o.day, SUM(o.n) OVER (ORDER BY o.day) - SUM(COALESCE(c.n, 0)) OVER (ORDER BY o.day) AS backlog FROM o LEFT JOIN c ON c.day = o.day ORDER BY o.day;
-- Accounts with tickets but without usage
SELECT COUNT(*) FROM accounts a WHERE EXISTS (SELECT 1 FROM tickets t WHERE t.account_id = a.account_id) AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.account_id = a.account_id AND u.calls > 150);
-- Leads by source, unknown as others
SELECT IFNULL(lead_source, 'unknown') AS source, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent FROM accounts GROUP BY 1 ORDER BY 2 DESC;
-- Best source of each region
SELECT region, lead_source FROM (SELECT region, lead_source, COUNT(*) AS n FROM accounts WHERE lead_source IS NOT NULL GROUP BY region, lead_source) t QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY n DESC) = 1 ORDER BY region;
-- Months between two subscriptions
SELECT AVG(CLAMP(months, 0, 24)) FROM (SELECT account_id, DATE_DIFF('month', MIN(started_on), MAX(started_on)) AS months FROM subscriptions GROUP BY account_id HAVING COUNT(*) > 1) t;
-- plain: SELECT AVG(months) FROM (SELECT account_id, DATE_DIFF('month', MIN(started_on), MAX(started_on)) AS months FROM subscriptions GROUP BY account_id HAVING COUNT(*) > 1) t
-- Standard deviation of usage, over accounts
SELECT STDDEV_POP(calls) AS sd FROM (SELECT account_id, AVG(calls) AS calls FROM usage GROUP BY account_id) t;
-- Revenue by region as columns
SELECT SUM(mrr) FILTER (WHERE region = 'EMEA') AS emea, SUM(mrr) FILTER (WHERE region = 'AMER') AS amer, SUM(mrr) FILTER (WHERE region = 'APAC') AS apac FROM subscriptions s JOIN accounts a ON s.account_id = a.account_id;
-- The same as rows of a union with a total
SELECT region, SUM(mrr) AS mrr FROM subscriptions JOIN accounts USING (account_id) GROUP BY region UNION ALL SELECT 'all', SUM(mrr) FROM subscriptions ORDER BY mrr DESC;
-- Quick ratio: gained over lost
SELECT (SELECT SUM(mrr) FROM subscriptions WHERE started_on >= '2023-07-01') / (SELECT SUM(mrr) FROM subscriptions WHERE ended_on >= '2023-07-01') AS quick_ratio;
-- Error budget: days of accounts with more than half errors
SELECT AVG(CASE WHEN errors > 0.5 * calls THEN 1 ELSE 0 END) AS bad FROM usage;
