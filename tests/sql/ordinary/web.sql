-- Daily active users
SELECT CAST(ts AS DATE) AS day, COUNT(DISTINCT user_id) AS dau FROM events WHERE ts >= '2024-02-01' AND ts < '2024-03-01' GROUP BY day ORDER BY day;
-- Weekly active users
SELECT date_trunc('week', ts) AS week, COUNT(DISTINCT user_id) AS wau FROM events WHERE ts < '2024-04-01' GROUP BY 1 HAVING COUNT(DISTINCT user_id) > 5 ORDER BY 1;
-- Monthly active users
SELECT strftime(ts, '%Y-%m') AS month, COUNT(DISTINCT user_id) AS mau FROM events GROUP BY 1 ORDER BY 1;
-- Page views by path
SELECT path, COUNT(*) AS views, COUNT(DISTINCT user_id) AS visitors FROM events WHERE event = 'page_view' GROUP BY path ORDER BY views DESC;
-- Views by section of the site
SELECT p.section, COUNT(*) AS views FROM events e JOIN pages p ON p.path = e.path WHERE e.event = 'page_view' GROUP BY p.section ORDER BY p.section;
-- A funnel by distinct users
SELECT COUNT(DISTINCT CASE WHEN event = 'page_view' THEN user_id END) AS viewed, COUNT(DISTINCT CASE WHEN event = 'signup' THEN user_id END) AS signed_up, COUNT(DISTINCT CASE WHEN event = 'purchase' THEN user_id END) AS bought FROM events;
-- The funnel in per cent
WITH f AS (SELECT COUNT(DISTINCT user_id) FILTER (WHERE event = 'page_view') AS viewed, COUNT(DISTINCT user_id) FILTER (WHERE event = 'purchase') AS bought FROM events)
SELECT 100.0 * bought / viewed AS percent FROM f;
-- An ordered funnel: a purchase after a sign-up
SELECT COUNT(DISTINCT a.user_id) AS users FROM events a JOIN events b ON a.user_id = b.user_id AND b.ts > a.ts WHERE a.event = 'signup' AND b.event = 'purchase';
-- The same by first times
WITH firsts AS (SELECT user_id, MIN(CASE WHEN event = 'signup' THEN ts END) AS signed_up, MIN(CASE WHEN event = 'purchase' THEN ts END) AS bought FROM events GROUP BY user_id)
SELECT COUNT(*) AS users, COUNT(signed_up) AS signed_up, COUNT(CASE WHEN bought > signed_up THEN 1 END) AS bought_later FROM firsts;
-- Hours from sign-up to purchase
SELECT MEDIAN(hours) FROM (SELECT user_id, date_diff('hour', MIN(ts) FILTER (WHERE event = 'signup'), MIN(ts) FILTER (WHERE event = 'purchase')) AS hours FROM events GROUP BY user_id) t WHERE hours BETWEEN 0 AND 1000;
-- Sessions and their pages
SELECT AVG(pages) AS pages, COUNT(*) AS sessions FROM (SELECT user_id, session_id, COUNT(*) AS pages FROM events GROUP BY user_id, session_id) s;
-- Length of sessions in seconds
SELECT AVG(seconds) FROM (SELECT user_id, session_id, date_diff('second', MIN(ts), MAX(ts)) AS seconds FROM events GROUP BY user_id, session_id) s WHERE seconds BETWEEN 0 AND 7200;
-- Bounce rate: sessions of one event
SELECT device, 100.0 * SUM(CASE WHEN n = 1 THEN 1 ELSE 0 END) / COUNT(*) AS bounce FROM (SELECT user_id, session_id, MIN(device) AS device, COUNT(*) AS n FROM events GROUP BY user_id, session_id) s GROUP BY device ORDER BY device;
-- Sessions from gaps of half an hour
SELECT COUNT(*) AS sessions FROM (SELECT user_id, ts, LAG(ts) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM events) t WHERE before IS NULL OR ts - before > INTERVAL 30 MINUTE;
-- Sign-ups by day and running total
SELECT created_at::DATE AS day, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY created_at::DATE) AS total FROM users GROUP BY 1 HAVING COUNT(*) >= 3 ORDER BY 1;
-- Retention of week cohorts
WITH cohort AS (SELECT user_id, date_trunc('week', created_at) AS week FROM users)
SELECT c.week, date_diff('week', c.week, date_trunc('week', e.ts)) AS weeks_later, COUNT(DISTINCT e.user_id) AS users FROM events e JOIN cohort c USING (user_id) GROUP BY 1, 2 HAVING COUNT(DISTINCT e.user_id) >= 5 ORDER BY 1, 2;
-- Users back on day one to seven
SELECT COUNT(DISTINCT u.user_id) AS returned FROM users u JOIN events e ON e.user_id = u.user_id WHERE e.ts >= u.created_at + INTERVAL 1 DAY AND e.ts < u.created_at + INTERVAL 8 DAY;
-- Retention rate in thirty days, by plan
SELECT u.plan, COUNT(DISTINCT e.user_id) * 100.0 / COUNT(DISTINCT u.user_id) AS retained FROM users u LEFT JOIN events e ON e.user_id = u.user_id AND e.ts BETWEEN u.created_at AND u.created_at + INTERVAL 30 DAY GROUP BY u.plan ORDER BY u.plan;
-- Stickiness: mean of daily users over monthly users
WITH d AS (SELECT CAST(ts AS DATE) AS day, COUNT(DISTINCT user_id) AS n FROM events WHERE ts >= '2024-02-01' AND ts < '2024-03-01' GROUP BY 1), m AS (SELECT COUNT(DISTINCT user_id) AS n FROM events WHERE ts >= '2024-02-01' AND ts < '2024-03-01')
SELECT AVG(d.n) / MAX(m.n) AS stickiness FROM d, m;
-- Conversion by experiment variant
SELECT x.variant, COUNT(*) AS users, AVG(CASE WHEN b.user_id IS NOT NULL THEN 1.0 ELSE 0 END) AS conversion FROM experiment x LEFT JOIN (SELECT DISTINCT user_id FROM events WHERE event = 'purchase') b ON b.user_id = x.user_id GROUP BY x.variant ORDER BY x.variant;
-- Conversion after exposure
SELECT variant, AVG(CASE WHEN EXISTS (SELECT 1 FROM events e WHERE e.user_id = x.user_id AND e.event = 'purchase' AND e.ts > x.exposed_at) THEN 1.0 ELSE 0.0 END) AS conversion FROM experiment x GROUP BY variant ORDER BY variant;
-- Revenue for each user by variant
SELECT x.variant, SUM(e.revenue) / COUNT(DISTINCT x.user_id) AS arpu FROM experiment x JOIN events e USING (user_id) GROUP BY x.variant ORDER BY x.variant;
-- Lift of the treatment
WITH rates AS (SELECT x.variant, COUNT(DISTINCT CASE WHEN e.event = 'purchase' THEN x.user_id END) * 1.0 / COUNT(DISTINCT x.user_id) AS rate FROM experiment x JOIN events e USING (user_id) GROUP BY x.variant)
SELECT t.rate / c.rate - 1 AS lift FROM rates t, rates c WHERE t.variant = 'treatment' AND c.variant = 'control';
-- Standard errors for a test
SELECT variant, COUNT(*) AS n, AVG(spent) AS mean, STDDEV_POP(spent) / SQRT(COUNT(*)) AS se FROM (SELECT x.user_id, x.variant, COALESCE(SUM(e.revenue), 0) AS spent FROM experiment x LEFT JOIN events e ON e.user_id = x.user_id GROUP BY x.user_id, x.variant) t GROUP BY variant ORDER BY variant;
-- Devices in per cent
SELECT device, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 2) AS percent FROM events GROUP BY device ORDER BY percent DESC;
-- Browser by device, pivoted
PIVOT (SELECT browser, device, COUNT(*) AS n FROM events GROUP BY browser, device) ON device IN ('mobile', 'desktop', 'tablet') USING SUM(n) GROUP BY browser ORDER BY browser;
-- Host of the referrer
SELECT split_part(split_part(referrer, '://', 2), '/', 1) AS host, COUNT(*) AS n FROM events WHERE referrer LIKE 'http%' GROUP BY host ORDER BY n DESC;
-- The host by a regular expression
SELECT regexp_extract(referrer, 'https?://([^/]+)', 1) AS host, COUNT(*) AS n FROM events WHERE referrer IS NOT NULL GROUP BY host ORDER BY n DESC;
-- Traffic source by CASE
SELECT CASE WHEN referrer IS NULL OR referrer = 'direct' THEN 'direct' WHEN referrer LIKE '%google.%' THEN 'search' ELSE 'referral' END AS source, COUNT(DISTINCT session_id) AS sessions FROM events GROUP BY source ORDER BY sessions DESC;
-- Language from JSON
SELECT json_extract_string(properties, '$.lang') AS lang, COUNT(*) AS n FROM events GROUP BY lang ORDER BY lang;
-- A nested JSON path by arrows
SELECT properties->'utm'->>'source' AS source, COUNT(*) AS n FROM events GROUP BY 1 ORDER BY 1;
-- Mean load time from JSON
SELECT path, AVG(LEAST(CAST(properties->>'ms' AS INTEGER), 5000)) AS ms FROM events WHERE CAST(properties->>'ms' AS INTEGER) >= 0 GROUP BY path ORDER BY ms DESC;
-- 95th percentile of load times
SELECT QUANTILE_CONT(CLAMP(CAST(json_extract(properties, '$.ms') AS DOUBLE), 0, 10000), 0.95) AS p95 FROM events;
-- plain: SELECT QUANTILE_CONT(CAST(json_extract(properties, '$.ms') AS DOUBLE), 0.95) AS p95 FROM events
-- Purchases by hour in Berlin
SELECT EXTRACT(HOUR FROM ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') AS hour, COUNT(*) AS n FROM events WHERE event = 'purchase' GROUP BY hour ORDER BY hour;
-- Revenue by month and plan, with totals
SELECT date_trunc('month', e.ts) AS month, u.plan, SUM(e.revenue) AS revenue FROM events e JOIN users u USING (user_id) WHERE e.ts < '2024-04-01' GROUP BY GROUPING SETS ((1, 2), (1)) ORDER BY 1, 2;
-- Average revenue of paying users
SELECT AVG(total) FROM (SELECT user_id, SUM(revenue) AS total FROM events WHERE revenue > 0 GROUP BY user_id) t;
-- Revenue of the top fifth of payers, as a threshold
SELECT QUANTILE_DISC(total, 0.8) AS threshold FROM (SELECT user_id, SUM(revenue) AS total FROM events WHERE revenue IS NOT NULL GROUP BY user_id) t;
-- Events for each user by buckets
SELECT CASE WHEN n <= 5 THEN '1-5' WHEN n <= 10 THEN '6-10' ELSE '11+' END AS bucket, COUNT(*) AS users FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) t GROUP BY 1 ORDER BY 1;
-- First page of a session
SELECT landing, COUNT(*) AS sessions FROM (SELECT user_id, session_id, arg_min(path, ts) AS landing FROM events GROUP BY user_id, session_id) s GROUP BY landing ORDER BY sessions DESC;
-- The same by FIRST_VALUE
SELECT landing, COUNT(*) AS events FROM (SELECT FIRST_VALUE(path) OVER (PARTITION BY user_id, session_id ORDER BY ts, event_id) AS landing FROM events) t GROUP BY landing ORDER BY landing;
-- Last device that users used
SELECT device, COUNT(*) AS users FROM (SELECT user_id, device, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY ts DESC) AS rn FROM events) t WHERE rn = 1 GROUP BY device ORDER BY device;
-- Next event after a page view
SELECT event, next_event, COUNT(*) AS n FROM (SELECT event, LEAD(event) OVER (PARTITION BY user_id ORDER BY ts) AS next_event FROM events) t WHERE next_event IS NOT NULL GROUP BY event, next_event ORDER BY event, next_event;
-- Users with two or more purchases
SELECT COUNT(*) FROM (SELECT user_id FROM events WHERE event = 'purchase' GROUP BY user_id HAVING COUNT(*) >= 2) t;
-- Users on more than one device
SELECT AVG(CASE WHEN devices > 1 THEN 1.0 ELSE 0 END) AS share FROM (SELECT user_id, COUNT(DISTINCT device) AS devices FROM events GROUP BY user_id) t;
-- Visitors without a purchase, by country
SELECT country, COUNT(*) AS n FROM users WHERE user_id NOT IN (SELECT user_id FROM events WHERE event = 'purchase') GROUP BY country ORDER BY country;
-- Minutes in which something happened
SELECT COUNT(DISTINCT date_trunc('minute', ts)) AS minutes FROM events;
-- Seven-day rolling active users from daily counts
SELECT day, AVG(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS rolling FROM (SELECT CAST(ts AS DATE) AS day, COUNT(DISTINCT user_id) AS n FROM events WHERE ts BETWEEN '2024-02-01' AND '2024-03-01' GROUP BY 1) d ORDER BY day;
-- Campaigns with unknown
SELECT COALESCE(NULLIF(TRIM(campaign), ''), '(none)') AS campaign, COUNT(*) AS users FROM users GROUP BY 1 ORDER BY 2 DESC;
-- Country and plan as one label
SELECT country || '/' || plan AS label, COUNT(*) AS n FROM users GROUP BY label ORDER BY label;
-- Sign-ups by ISO week as text
SELECT strftime(created_at, '%G-W%V') AS week, COUNT(*) AS n FROM users GROUP BY week ORDER BY week;
-- Time of day in four parts
SELECT CASE WHEN hour(ts) BETWEEN 6 AND 11 THEN 'morning' WHEN hour(ts) BETWEEN 12 AND 17 THEN 'afternoon' WHEN hour(ts) BETWEEN 18 AND 23 THEN 'evening' ELSE 'night' END AS part, COUNT(*) AS n FROM events GROUP BY part ORDER BY n DESC;
-- Users by EPOCH days since the first of January
SELECT FLOOR((EPOCH(created_at) - EPOCH(TIMESTAMP '2024-01-01')) / 86400 / 7) AS week, COUNT(*) AS n FROM users GROUP BY week ORDER BY week;
-- Approximate distinct sessions
SELECT APPROX_COUNT_DISTINCT(session_id) AS sessions FROM events;
-- plain: SELECT COUNT(DISTINCT session_id) AS sessions FROM events
-- Paths of the blog or the documents
SELECT COUNT(*) FROM events WHERE path IN ('/blog', '/docs') AND event = 'page_view' AND (device = 'mobile' OR browser ILIKE 'fire%');
