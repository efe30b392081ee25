-- Population by sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex;
-- Mean age and income
SELECT AVG(age) AS age, AVG(income) AS income FROM people;
-- Population by ten-year age groups
SELECT (age / 10)::INT * 10 AS decade, COUNT(*) AS n FROM people WHERE age % 10 < 5 GROUP BY 1 ORDER BY 1;
-- Population by five-year age groups, integer division
SELECT age // 5 * 5 AS from_age, COUNT(*) AS n FROM people GROUP BY from_age ORDER BY from_age;
-- A population pyramid
SELECT FLOOR(age / 10.0) * 10 AS age_from, COUNT(*) FILTER (WHERE sex = 'female') AS women, COUNT(*) FILTER (WHERE sex = 'male') AS men FROM people GROUP BY 1 ORDER BY 1 DESC;
-- Sex ratio by state: men to one hundred women
SELECT r.state, 100.0 * SUM(CASE WHEN p.sex = 'male' THEN 1 ELSE 0 END) / SUM(CASE WHEN p.sex = 'female' THEN 1 ELSE 0 END) AS ratio FROM people p JOIN regions r USING (state_id) GROUP BY r.state ORDER BY r.state;
-- Density by state
SELECT r.state, COUNT(*) / MAX(r.area) AS density FROM people p JOIN regions r ON p.state_id = r.state_id GROUP BY r.state ORDER BY density DESC;
-- Density with the area as a key
SELECT r.state, r.area, COUNT(*) * 1.0 / r.area AS density FROM people p JOIN regions r ON p.state_id = r.state_id GROUP BY r.state, r.area ORDER BY r.state;
-- Education by region, in per cent of each region
SELECT region, education, ROUND(100.0 * n / SUM(n) OVER (PARTITION BY region), 2) AS percent FROM (
  SELECT r.region, p.education, COUNT(*) AS n FROM people p JOIN regions r USING (state_id) GROUP BY r.region, p.education) t ORDER BY region, education;
-- Income quartiles
SELECT QUANTILE_CONT(income, [0.25, 0.5, 0.75]) AS quartiles FROM people;
-- Median income by education
SELECT education, MEDIAN(income) AS median FROM people GROUP BY education ORDER BY median DESC;
-- Median income as PostgreSQL writes it
SELECT sex, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) AS median FROM people GROUP BY sex;
-- Wage gap
SELECT AVG(CASE WHEN sex = 'female' THEN income END) / AVG(CASE WHEN sex = 'male' THEN income END) AS ratio FROM people WHERE occupation IS NOT NULL;
-- Wage gap by occupation
SELECT occupation, AVG(income) FILTER (WHERE sex = 'male') - AVG(income) FILTER (WHERE sex = 'female') AS gap FROM people WHERE occupation IS NOT NULL GROUP BY occupation ORDER BY gap DESC;
-- Dependency ratio
SELECT 100.0 * COUNT(CASE WHEN age < 15 OR age >= 65 THEN 1 END) / COUNT(CASE WHEN age BETWEEN 15 AND 64 THEN 1 END) AS dependency FROM people;
-- Employment rate of working age
SELECT AVG(CASE WHEN hours > 0 THEN 1 ELSE 0 END) AS rate FROM people WHERE age BETWEEN 18 AND 64;
-- Weighted population estimate
SELECT state_id, SUM(weight) AS population FROM people GROUP BY state_id ORDER BY state_id;
-- Weighted mean of income
SELECT SUM(income * weight) / SUM(CASE WHEN income IS NOT NULL THEN weight END) AS mean FROM people;
-- Correlation of age and income
SELECT CORR(age, income) AS r FROM people;
-- Regression of income on hours
SELECT REGR_SLOPE(income, hours) AS slope, REGR_INTERCEPT(income, hours) AS intercept FROM people;
-- Quality of that regression
SELECT REGR_R2(income, hours) AS r2, REGR_COUNT(income, hours) AS n FROM people;
-- Spread of incomes
SELECT STDDEV(income) AS sd, VAR_POP(income) AS variance, STDDEV_POP(income) / AVG(income) AS cv FROM people;
-- Missing values
SELECT COUNT(*) - COUNT(income) AS no_income, COUNT(*) - COUNT(occupation) AS no_occupation, 100.0 * (COUNT(*) - COUNT(hours)) / COUNT(*) AS percent_no_hours FROM people;
-- Most common occupation
SELECT MODE(occupation) AS most FROM people;
-- Three most common occupations
SELECT occupation, COUNT(*) AS n FROM people WHERE occupation IS NOT NULL GROUP BY occupation ORDER BY COUNT(*) DESC LIMIT 3;
-- Household sizes
SELECT size, COUNT(*) AS households FROM (SELECT household_id, COUNT(*) AS size FROM people GROUP BY household_id) h GROUP BY size ORDER BY size;
-- Number of households
SELECT COUNT(DISTINCT household_id) AS households FROM people;
-- Education cross marital status
SELECT education, marital, COUNT(*) AS n FROM people GROUP BY CUBE (education, marital) ORDER BY education, marital;
-- Subtotals for regions and states
SELECT r.region, r.state, COUNT(*) AS n FROM people p JOIN regions r USING (state_id) GROUP BY ROLLUP (r.region, r.state);
-- Income brackets by CASE
SELECT CASE WHEN income < 20000 THEN 'low' WHEN income < 60000 THEN 'middle' WHEN income IS NULL THEN 'unknown' ELSE 'high' END AS bracket, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY bracket;
-- Income brackets from a public table of ranges
SELECT b.bracket, COUNT(*) AS n FROM people p JOIN brackets b ON p.income >= b.from_income AND p.income < b.to_income GROUP BY b.bracket ORDER BY b.bracket;
-- Share of people with a degree, by state, sorted
SELECT r.state, AVG(CASE WHEN education IN ('bachelor', 'master', 'doctorate') THEN 1.0 ELSE 0 END) AS degree FROM people p JOIN regions r USING (state_id) GROUP BY 1 ORDER BY 2 DESC;
-- States above the country's mean
WITH by_state AS (SELECT state_id, AVG(income) AS income FROM people GROUP BY state_id)
SELECT state_id, income FROM by_state WHERE income > (SELECT AVG(income) FROM by_state) ORDER BY state_id;
-- Rank of states by income
SELECT state_id, RANK() OVER (ORDER BY AVG(income) DESC) AS place FROM people GROUP BY state_id ORDER BY place;
-- Commuting by transport: mean and 90th percentile
SELECT transport, AVG(commute) AS mean, QUANTILE_CONT(commute, 0.9) AS p90 FROM people WHERE hours > 0 GROUP BY transport;
-- Long commutes
SELECT COUNT(*) FILTER (WHERE commute > 60) * 100.0 / COUNT(*) AS percent FROM people WHERE commute > 0;
-- A histogram of commuting times
SELECT WIDTH_BUCKET(commute, 0, 90, 9) AS bucket, COUNT(*) AS n FROM people GROUP BY bucket ORDER BY bucket;
-- plain: SELECT CASE WHEN commute < 0 THEN 0 WHEN commute >= 90 THEN 10 ELSE CAST(floor(commute / 10.0) AS INTEGER) + 1 END AS bucket, COUNT(*) AS n FROM people GROUP BY bucket ORDER BY bucket
-- Interviews by week
SELECT DATE_TRUNC('week', interviewed) AS week, COUNT(*) AS n FROM people GROUP BY week ORDER BY week;
-- Interviews up to each week, in per cent
SELECT week, 100.0 * SUM(n) OVER (ORDER BY week) / SUM(n) OVER () AS done FROM (SELECT DATE_TRUNC('week', interviewed) AS week, COUNT(*) AS n FROM people GROUP BY week) w ORDER BY week;
-- Year of birth
SELECT 2020 - age AS born, COUNT(*) AS n FROM people WHERE age BETWEEN 20 AND 29 GROUP BY born ORDER BY born;
-- Foreign born by state, those above a quarter
SELECT state_id, AVG(foreign_born::INT) AS share FROM people GROUP BY state_id HAVING AVG(foreign_born::INT) > 0.25;
-- Any doctorate among farmers?
SELECT BOOL_OR(education = 'doctorate') AS some, BOOL_AND(age >= 0) AS every FROM people WHERE occupation = 'farmer';
-- Singles under thirty by sex
SELECT sex, COUNT(*) AS n FROM people WHERE marital = 'single' AND age < 30 GROUP BY sex;
-- People with income above the median of their table
SELECT COUNT(*) FROM people WHERE income > 90000;
-- Gini-like: income share of those above 100,000
SELECT SUM(income) FILTER (income > 100000) / SUM(income) AS share FROM people;
-- Full-time, part-time, none
SELECT CASE WHEN hours >= 35 THEN 'full' WHEN hours > 0 THEN 'part' ELSE 'none' END AS work, sex, COUNT(*) AS n FROM people GROUP BY work, sex ORDER BY work, sex;
-- Mean hours of those who work, by education and sex
SELECT education, sex, ROUND(AVG(hours), 1) AS hours FROM people WHERE hours IS NOT NULL GROUP BY education, sex ORDER BY education, sex;
-- Oldest and youngest
SELECT MIN(age) AS youngest, MAX(age) AS oldest FROM people;
-- A PIVOT of marital status
WITH t AS (SELECT sex, marital, COUNT(*) AS n FROM people GROUP BY sex, marital)
PIVOT t ON marital IN ('single', 'married', 'divorced', 'widowed') USING SUM(n) GROUP BY sex ORDER BY sex;
-- Skewness and kurtosis of incomes
SELECT SKEWNESS(income) AS skew, KURTOSIS(income) AS kurt FROM people;
-- Log income
SELECT AVG(LN(income + 1)) AS log_income FROM people WHERE income IS NOT NULL;
-- Geometric mean
SELECT EXP(AVG(LN(income))) AS geometric FROM people WHERE income > 0;
-- Standardised rates: age-specific rates and their weights
SELECT FLOOR(age / 20) AS g, AVG(CASE WHEN marital = 'married' THEN 1 ELSE 0 END) AS rate, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS weight FROM people GROUP BY 1 ORDER BY 1;
-- Occupations that start with a letter of the first half
SELECT LEFT(occupation, 1) AS initial, COUNT(*) AS n FROM people WHERE occupation < 'm' GROUP BY initial ORDER BY initial;
-- Titles of occupations
SELECT UPPER(LEFT(occupation, 1)) || SUBSTR(occupation, 2) AS title, COUNT(*) AS n FROM people WHERE occupation LIKE ANY ('t%', 'n%') GROUP BY title;
-- plain: SELECT UPPER(LEFT(occupation, 1)) || SUBSTR(occupation, 2) AS title, COUNT(*) AS n FROM people WHERE occupation LIKE 't%' OR occupation LIKE 'n%' GROUP BY title
-- Regular expression over occupations
SELECT COUNT(*) FROM people WHERE regexp_matches(occupation, '^(nurse|teach.*)$');
-- Greatest of two numbers
SELECT AVG(GREATEST(commute, 10)) AS commute FROM people;
-- Distinct occupations by state
SELECT state_id, COUNT(DISTINCT occupation) AS kinds FROM people GROUP BY state_id ORDER BY state_id;
-- Difference to the national mean by state
SELECT state_id, AVG(income) - AVG(AVG(income)) OVER () AS difference FROM people GROUP BY state_id ORDER BY state_id;
