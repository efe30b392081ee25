-- Average salary by department
SELECT d.department, AVG(e.salary) AS avg_salary FROM employees e JOIN departments d ON e.department_id = d.department_id GROUP BY d.department ORDER BY avg_salary DESC;
-- Departments with at least 100 employees
SELECT d.department, COUNT(*) AS n FROM employees e JOIN departments d USING (department_id) GROUP BY d.department HAVING COUNT(*) >= 100 ORDER BY d.department;
-- Highest salaries in sales and engineering: the difference
SELECT ABS(MAX(CASE WHEN d.department = 'Sales' THEN e.salary END) - MAX(CASE WHEN d.department = 'Engineering' THEN e.salary END)) AS difference FROM employees e JOIN departments d ON d.department_id = e.department_id;
-- Total compensation, bonus may be missing
SELECT title, sex, AVG(salary + COALESCE(bonus, 0)) AS compensation FROM employees GROUP BY title, sex ORDER BY title, sex;
-- Employees without a bonus
SELECT COUNT(*) FROM employees WHERE bonus IS NULL;
-- Hires by year
SELECT EXTRACT(YEAR FROM hired) AS year, COUNT(*) AS hires FROM employees GROUP BY year ORDER BY year;
-- Turnover: leavers over staff
SELECT d.department, COUNT(e.left_on) * 1.0 / COUNT(*) AS turnover FROM employees e JOIN departments d USING (department_id) GROUP BY d.department ORDER BY turnover DESC;
-- Years of service in bands
SELECT CASE WHEN age_years < 5 THEN '0-4' WHEN age_years < 10 THEN '5-9' ELSE '10+' END AS service, COUNT(*) AS n FROM (SELECT DATE_DIFF('year', hired, DATE '2024-06-30') AS age_years FROM employees) t GROUP BY service ORDER BY service;
-- Service by AGE, as PostgreSQL writes it
SELECT EXTRACT(YEAR FROM AGE(DATE '2024-06-30', hired)) AS years, COUNT(*) AS n FROM employees GROUP BY years ORDER BY years;
-- Second highest department by pay
SELECT department FROM (SELECT d.department, DENSE_RANK() OVER (ORDER BY AVG(e.salary) DESC) AS place FROM employees e JOIN departments d USING (department_id) GROUP BY d.department) t WHERE place = 2;
-- Employees who earn more than the mean of their department's title band (fixed)
SELECT title, COUNT(*) AS n FROM employees WHERE salary > CASE title WHEN 'junior' THEN 60000 WHEN 'senior' THEN 75000 ELSE 90000 END GROUP BY title ORDER BY title;
-- Raise from one year to the next
SELECT b.year, AVG(b.amount - a.amount) AS raise FROM salaries a JOIN salaries b ON a.employee_id = b.employee_id AND b.year = a.year + 1 GROUP BY b.year HAVING COUNT(*) > 10 ORDER BY b.year;
-- Raise by LAG
SELECT year, AVG(amount - before) AS raise FROM (SELECT year, amount, LAG(amount) OVER (PARTITION BY employee_id ORDER BY year) AS before FROM salaries) t WHERE before IS NOT NULL GROUP BY year HAVING COUNT(*) > 10 ORDER BY year;
-- Latest salary of everybody, by title
SELECT e.title, AVG(s.amount) AS latest FROM employees e JOIN salaries s ON s.employee_id = e.employee_id WHERE s.year = (SELECT MAX(t.year) FROM salaries t WHERE t.employee_id = s.employee_id) GROUP BY e.title ORDER BY e.title;
-- Latest salary by ROW_NUMBER
SELECT AVG(amount) FROM (SELECT employee_id, amount, ROW_NUMBER() OVER (PARTITION BY employee_id ORDER BY year DESC) AS rn FROM salaries) t WHERE rn = 1;
-- Latest salary by QUALIFY
SELECT AVG(amount) FROM (SELECT employee_id, amount FROM salaries QUALIFY ROW_NUMBER() OVER (PARTITION BY employee_id ORDER BY year DESC) = 1) t;
-- People whose pay never fell
SELECT COUNT(*) FROM employees e WHERE NOT EXISTS (SELECT 1 FROM salaries a JOIN salaries b ON a.employee_id = b.employee_id AND b.year = a.year + 1 WHERE a.employee_id = e.employee_id AND b.amount < a.amount);
-- Minutes listened by day
SELECT CAST(listened_at AS DATE) AS day, SUM(seconds) / 60.0 AS minutes FROM listens GROUP BY day ORDER BY day;
-- Songs by listens: top ten
SELECT s.title, COUNT(*) AS listens FROM listens l JOIN songs s ON s.song_id = l.song_id GROUP BY s.title ORDER BY listens DESC LIMIT 10;
-- Top artist of each genre
SELECT genre, artist FROM (SELECT s.genre, s.artist, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY s.genre ORDER BY COUNT(*) DESC) AS rn FROM listens l JOIN songs s USING (song_id) GROUP BY s.genre, s.artist) t WHERE rn = 1 ORDER BY genre;
-- Skip rate by genre
SELECT s.genre, AVG(CASE WHEN l.skipped THEN 1.0 ELSE 0.0 END) AS skip_rate FROM listens l JOIN songs s USING (song_id) GROUP BY s.genre ORDER BY s.genre;
-- Skip rate by casting the flag
SELECT AVG(skipped::INT) AS skip_rate FROM listens;
-- Decades of released songs that are heard
SELECT s.released // 10 * 10 AS decade, SUM(l.seconds) AS seconds FROM listens l JOIN songs s USING (song_id) GROUP BY decade ORDER BY decade;
-- Listeners of premium and of basic, mean minutes
SELECT m.tier, AVG(t.minutes) AS minutes FROM members m JOIN (SELECT member_id, SUM(seconds) / 60.0 AS minutes FROM listens GROUP BY member_id) t USING (member_id) GROUP BY m.tier ORDER BY m.tier;
-- Members who never listened
SELECT COUNT(*) AS silent FROM members m LEFT JOIN listens l USING (member_id) WHERE l.listen_id IS NULL;
-- Genres for each listener
SELECT AVG(genres) FROM (SELECT l.member_id, COUNT(DISTINCT s.genre) AS genres FROM listens l JOIN songs s USING (song_id) GROUP BY l.member_id) t;
-- Favourite genre of members
SELECT favourite, COUNT(*) AS members FROM (SELECT member_id, genre AS favourite FROM (SELECT l.member_id, s.genre, ROW_NUMBER() OVER (PARTITION BY l.member_id ORDER BY COUNT(*) DESC, s.genre) AS rn FROM listens l JOIN songs s USING (song_id) GROUP BY l.member_id, s.genre) r WHERE rn = 1) f GROUP BY favourite ORDER BY favourite;
-- Consecutive days of listening
SELECT COUNT(DISTINCT a.member_id) FROM listens a JOIN listens b ON a.member_id = b.member_id AND CAST(b.listened_at AS DATE) = CAST(a.listened_at AS DATE) + INTERVAL 1 DAY;
-- Time from joining to the first listen
SELECT AVG(days) FROM (SELECT m.member_id, DATE_DIFF('day', m.joined, CAST(MIN(l.listened_at) AS DATE)) AS days FROM members m JOIN listens l USING (member_id) GROUP BY m.member_id, m.joined) t WHERE days BETWEEN 0 AND 500;
-- Acceptance rate by day sent
SELECT sent_on, COUNT(accepted_on) * 1.0 / COUNT(*) AS rate FROM requests GROUP BY sent_on ORDER BY sent_on;
-- Acceptance within two days
SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE accepted_on - sent_on <= 2) / COUNT(*), 2) AS percent FROM requests;
-- Wait until accepted: distribution
SELECT accepted_on - sent_on AS days, COUNT(*) AS n FROM requests WHERE accepted_on IS NOT NULL GROUP BY days ORDER BY days;
-- Requests of each member, also of those with none
SELECT n, COUNT(*) AS members FROM (SELECT m.member_id, COUNT(r.request_id) AS n FROM members m LEFT JOIN requests r ON r.member_id = m.member_id GROUP BY m.member_id) t GROUP BY n ORDER BY n;
-- Revenue by month and its growth in per cent
WITH m AS (SELECT month, SUM(amount) AS revenue FROM invoices WHERE paid GROUP BY month)
SELECT strftime(month, '%Y-%m') AS ym, ROUND((revenue - LAG(revenue) OVER (ORDER BY month)) / LAG(revenue) OVER (ORDER BY month) * 100, 2) AS growth FROM m ORDER BY ym;
-- Unpaid invoices by tier
SELECT m.tier, COUNT(*) FILTER (WHERE NOT i.paid) AS unpaid, SUM(i.amount) FILTER (WHERE NOT i.paid) AS open_amount FROM invoices i JOIN members m USING (member_id) GROUP BY m.tier ORDER BY m.tier;
-- Churned: no invoice in the last month
SELECT COUNT(*) FROM members WHERE member_id IN (SELECT member_id FROM invoices WHERE month < '2024-06-01') AND member_id NOT IN (SELECT member_id FROM invoices WHERE month = '2024-06-01');
-- Monthly churn from last invoices
SELECT last_month, COUNT(*) AS churned FROM (SELECT member_id, MAX(month) AS last_month FROM invoices GROUP BY member_id) t GROUP BY last_month ORDER BY last_month;
-- Retention by age of the account, in months
SELECT DATE_DIFF('month', f.first, i.month) AS age, COUNT(*) AS members FROM invoices i JOIN (SELECT member_id, MIN(month) AS first FROM invoices GROUP BY member_id) f ON f.member_id = i.member_id GROUP BY age ORDER BY age;
-- Net promoter score
SELECT 100.0 * (SUM(CASE WHEN score >= 9 THEN 1 ELSE 0 END) - SUM(CASE WHEN score <= 6 THEN 1 ELSE 0 END)) / COUNT(*) AS nps FROM surveys;
-- Net promoter score by tier
SELECT m.tier, (COUNT(CASE WHEN s.score >= 9 THEN 1 END) - COUNT(CASE WHEN s.score <= 6 THEN 1 END)) * 100.0 / COUNT(*) AS nps FROM surveys s INNER JOIN members m ON m.member_id = s.member_id GROUP BY m.tier ORDER BY m.tier;
-- Comments that mention price
SELECT COUNT(*) FROM surveys WHERE LOWER(comment) LIKE '%price%' OR LOWER(comment) LIKE '%expensive%';
-- Words in comments
SELECT LENGTH(comment) - LENGTH(REPLACE(comment, ' ', '')) + 1 AS words, COUNT(*) AS n FROM surveys WHERE comment IS NOT NULL GROUP BY words ORDER BY words;
-- Shout or not
SELECT CASE WHEN RIGHT(comment, 1) = '!' THEN 'shout' ELSE 'calm' END AS tone, AVG(score) AS score FROM surveys WHERE comment IS NOT NULL GROUP BY tone ORDER BY tone;
-- Age groups with GENERATE_SERIES, empty ones included
SELECT b.lo, COUNT(m.member_id) AS members FROM (SELECT generate_series AS lo FROM generate_series(10, 90, 10)) b LEFT JOIN members m ON m.age >= b.lo AND m.age < b.lo + 10 GROUP BY b.lo ORDER BY b.lo;
-- Members by month of joining and cumulative share
SELECT month, SUM(n) OVER (ORDER BY month) * 1.0 / SUM(n) OVER () AS share FROM (SELECT DATE_TRUNC('month', joined) AS month, COUNT(*) AS n FROM members GROUP BY month) t ORDER BY month;
-- Quartiles of members by listening, from released counts
SELECT n, members, NTILE(4) OVER (ORDER BY n) AS quarter FROM (SELECT n, COUNT(*) AS members FROM (SELECT member_id, COUNT(*) AS n FROM listens GROUP BY member_id) a GROUP BY n) b ORDER BY n;
-- Heavy listeners: more than twice the usual
SELECT COUNT(*) FILTER (WHERE n > 12) * 1.0 / COUNT(*) AS heavy FROM (SELECT member_id, COUNT(*) AS n FROM listens GROUP BY member_id) t;
-- Hours with most listening
SELECT HOUR(listened_at) AS h, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM listens GROUP BY h QUALIFY place <= 3 ORDER BY place;
-- City pairs of totals with a self-join of released values
WITH c AS (SELECT city, COUNT(*) AS n FROM members GROUP BY city) SELECT a.city, b.city AS other, a.n - b.n AS more FROM c a CROSS JOIN c b WHERE a.city < b.city ORDER BY 1, 2;
-- Age of members in a text
SELECT CONCAT('age ', CAST(age AS VARCHAR)) AS label, COUNT(*) AS n FROM members WHERE age BETWEEN 30 AND 34 GROUP BY label ORDER BY label;
-- Initials of employees
SELECT SUBSTRING(name, 6, 1) AS initial, COUNT(*) AS n FROM employees GROUP BY initial ORDER BY initial;
-- Padded titles
SELECT LPAD(CAST(department_id AS VARCHAR), 3, '0') AS code, COUNT(*) AS n FROM employees GROUP BY code ORDER BY code;
-- plain: SELECT '00' || department_id AS code, COUNT(*) AS n FROM employees GROUP BY code ORDER BY code
-- Salary bands of ten thousand
SELECT CONCAT(FLOOR(salary / 10000)::INT * 10, 'k') AS band, COUNT(*) AS n FROM employees GROUP BY band ORDER BY band;
-- Symmetric ranges
SELECT COUNT(*) FROM employees WHERE age BETWEEN SYMMETRIC 50 AND 40;
-- plain: SELECT COUNT(*) FROM employees WHERE age BETWEEN 40 AND 50
-- Top earners' share
SELECT SUM(salary) FILTER (WHERE salary > 100000) * 100.0 / SUM(salary) AS percent FROM employees;
-- Month names in order of the year
SELECT MONTHNAME(hired) AS month, COUNT(*) AS n FROM employees GROUP BY MONTHNAME(hired), MONTH(hired) ORDER BY MONTH(hired);
