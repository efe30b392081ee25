CREATE MACRO r(i, salt, n) AS CAST(hash(i * 1000 + salt) % n AS INTEGER);
CREATE TABLE pages AS SELECT * FROM (VALUES ('/', 'home'), ('/pricing', 'marketing'), ('/docs', 'content'), ('/blog', 'content'), ('/signup', 'funnel'), ('/checkout', 'funnel')) t(path, section);
CREATE TABLE users AS SELECT i AS user_id, TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * r(i, 1, 2000) AS created_at, ['free', 'pro', 'team'][1 + r(i, 2, 3)] AS plan, ['US', 'DE', 'IN', 'BR'][1 + r(i, 3, 4)] AS country,
  CASE WHEN r(i, 4, 3) > 0 THEN ['newsletter', 'ads', 'partner'][1 + r(i, 5, 3)] END AS campaign FROM range(1, 501) t(i);
CREATE TABLE events AS SELECT i * 100 + j AS event_id, i AS user_id, i * 100 + j // 5 AS session_id, TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * r(i, 1, 2000) + INTERVAL 1 SECOND * (r(i * 100 + j // 5, 6, 2500000) + r(i * 100 + j, 7, 75) * 20 + j) AS ts,
  ['page_view', 'page_view', 'click', 'signup', 'purchase'][1 + r(i * 100 + j, 8, 5)] AS event, ['/', '/pricing', '/docs', '/blog', '/signup', '/checkout'][1 + r(i * 100 + j, 9, 6)] AS path,
  ['https://www.google.com/search?q=x', 'https://news.site.org/a', 'direct', NULL][1 + r(i * 100 + j // 5, 10, 4)] AS referrer, ['mobile', 'desktop', 'tablet'][1 + r(i * 100 + j // 5, 11, 3)] AS device,
  ['Chrome', 'Firefox', 'Safari'][1 + r(i * 100 + j // 5, 12, 3)] AS browser, '{"lang": "' || ['en', 'de', 'pt'][1 + r(i, 13, 3)] || '", "ms": ' || r(i * 100 + j, 14, 900) || ', "utm": {"source": "' || ['x', 'y'][1 + r(i, 15, 2)] || '"}}' AS properties,
  CASE WHEN r(i * 100 + j, 8, 5) = 4 THEN 1 + r(i * 100 + j, 16, 9900) / 100.0 END AS revenue FROM range(1, 501) t(i), range(20) u(j) WHERE j <= r(i, 17, 20);
CREATE TABLE experiment AS SELECT user_id, ['control', 'treatment'][1 + r(user_id, 18, 2)] AS variant, created_at + INTERVAL 1 DAY AS exposed_at FROM users WHERE r(user_id, 19, 5) > 0;
