CREATE MACRO r(i, salt, n) AS CAST(hash(i * 1000 + salt) % n AS INTEGER);
CREATE TABLE regions AS SELECT i AS state_id, ['Alba', 'Borea', 'Castra', 'Dora', 'Estia', 'Fiora', 'Galba', 'Hesper'][i] AS state, ['north', 'south'][1 + i % 2] AS region, 100 + 37 * i AS area FROM range(1, 9) t(i);
CREATE TABLE brackets AS SELECT * FROM (VALUES (1, 0, 20000, 'low'), (2, 20000, 60000, 'middle'), (3, 60000, 200001, 'high')) t(id, from_income, to_income, bracket);
CREATE TABLE people AS SELECT i AS person_id, i // 3 AS household_id, r(i, 1, 95) AS age, ['female', 'male'][1 + r(i, 2, 2)] AS sex, 1 + r(i // 3, 3, 8) AS state_id,
  ['none', 'school', 'bachelor', 'master', 'doctorate'][1 + r(i, 4, 5)] AS education, ['single', 'married', 'divorced', 'widowed'][1 + r(i, 5, 4)] AS marital,
  CASE WHEN r(i, 6, 10) > 1 THEN ['nurse', 'teacher', 'engineer', 'farmer', 'clerk', 'driver', 'cook', 'lawyer'][1 + r(i, 7, 8)] END AS occupation,
  CASE WHEN r(i, 6, 10) > 1 THEN r(i, 8, 70) END AS hours, CASE WHEN r(i, 9, 12) > 0 THEN 100 * r(i, 10, 1800) ELSE NULL END AS income, 1 + r(i, 11, 40) / 10.0 AS weight,
  r(i, 12, 4) = 0 AS foreign_born, r(i, 13, 90) AS commute, ['car', 'bus', 'bike', 'walk'][1 + r(i, 14, 4)] AS transport, DATE '2020-03-01' + r(i, 15, 90) AS interviewed FROM range(1, 2001) t(i);
