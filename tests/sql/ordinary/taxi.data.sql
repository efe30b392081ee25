CREATE MACRO r(i, salt, n) AS CAST(hash(i * 1000 + salt) % n AS INTEGER);
CREATE TABLE zones AS SELECT i AS zone_id, 'Zone ' || i AS zone, ['Manhattan', 'Brooklyn', 'Queens', 'Bronx'][1 + i % 4] AS borough, i % 5 = 0 AS airport FROM range(1, 21) t(i);
CREATE TABLE weather AS SELECT CAST(DATE '2024-01-01' + CAST(i AS INTEGER) AS DATE) AS day, r(i, 50, 25) - 3 AS celsius, r(i, 51, 3) = 0 AS rain FROM range(91) t(i);
CREATE TABLE drivers AS SELECT i AS driver_id, ['day', 'night'][1 + r(i, 1, 2)] AS shift, DATE '2015-01-01' + r(i, 2, 3000) AS licensed, ['sedan', 'van', 'electric'][1 + r(i, 3, 3)] AS vehicle FROM range(1, 301) t(i);
CREATE TABLE trips AS SELECT i * 100 + j AS trip_id, i AS driver_id, TIMESTAMP '2024-01-01 00:00:00' + INTERVAL 1 SECOND * r(i * 100 + j, 4, 7862400) AS pickup_at, 1 + r(i * 100 + j, 5, 20) AS pickup_zone,
  1 + r(i * 100 + j, 6, 20) AS dropoff_zone, CASE WHEN r(i * 100 + j, 7, 20) > 0 THEN 1 + r(i * 100 + j, 8, 5) END AS passengers, 0.5 + r(i * 100 + j, 9, 250) / 10.0 AS distance,
  3 + r(i * 100 + j, 10, 7000) / 100.0 AS fare, CASE WHEN r(i * 100 + j, 11, 3) > 0 THEN r(i * 100 + j, 12, 1500) / 100.0 ELSE 0 END AS tip, ['card', 'cash', 'account'][1 + r(i * 100 + j, 13, 3)] AS payment,
  180 + r(i * 100 + j, 14, 5000) AS seconds, CASE WHEN r(i * 100 + j, 15, 3) = 0 THEN 1 + r(i * 100 + j, 16, 5) END AS rating FROM range(1, 301) t(i), range(16) u(j) WHERE j <= r(i, 17, 16);
ALTER TABLE trips ADD COLUMN dropoff_at TIMESTAMP;
UPDATE trips SET dropoff_at = pickup_at + INTERVAL 1 SECOND * seconds;
