-- Trips and revenue in all
SELECT COUNT(*) AS trips, SUM(fare) AS fares, SUM(fare + tip) AS revenue FROM trips;
-- Trips by day
SELECT CAST(pickup_at AS DATE) AS day, COUNT(*) AS trips FROM trips GROUP BY 1 ORDER BY 1;
-- Trips by hour of the day
SELECT hour(pickup_at) AS hour, COUNT(*) AS trips, AVG(fare) AS fare FROM trips GROUP BY hour ORDER BY hour;
-- A heat map of weekdays and hours
SELECT dayofweek(pickup_at) AS dow, date_part('hour', pickup_at) AS hour, COUNT(*) AS trips FROM trips GROUP BY dow, hour ORDER BY dow, hour;
-- Tips in per cent of fares, by payment
SELECT payment, 100 * SUM(tip) / SUM(fare) AS tip_percent FROM trips GROUP BY payment ORDER BY payment;
-- Share of trips with a tip
SELECT payment, AVG(CASE WHEN tip > 0 THEN 1.0 ELSE 0.0 END) AS tipped FROM trips GROUP BY payment ORDER BY payment;
-- Average speed, in km an hour
SELECT SUM(distance) / (SUM(seconds) / 3600.0) AS kmh FROM trips WHERE seconds > 0;
-- Average duration from two timestamps
SELECT AVG(date_diff('minute', pickup_at, dropoff_at)) AS minutes FROM trips WHERE date_diff('minute', pickup_at, dropoff_at) BETWEEN 0 AND 120;
-- Duration by EPOCH, as PostgreSQL writes it
SELECT AVG(EXTRACT(EPOCH FROM (dropoff_at - pickup_at)) / 60) AS minutes FROM trips WHERE dropoff_at > pickup_at AND EXTRACT(EPOCH FROM (dropoff_at - pickup_at)) < 7200;
-- Trips by borough of pickup
SELECT z.borough, COUNT(*) AS trips FROM trips t JOIN zones z ON z.zone_id = t.pickup_zone GROUP BY z.borough ORDER BY trips DESC;
-- Flows between boroughs
SELECT a.borough AS origin, b.borough AS destination, COUNT(*) AS trips FROM trips t JOIN zones a ON t.pickup_zone = a.zone_id JOIN zones b ON t.dropoff_zone = b.zone_id GROUP BY 1, 2 ORDER BY 1, 2;
-- Trips inside one borough
SELECT COUNT(*) FROM trips t JOIN zones a ON t.pickup_zone = a.zone_id JOIN zones b ON t.dropoff_zone = b.zone_id WHERE a.borough = b.borough;
-- Busiest five pickup zones
SELECT z.zone, COUNT(*) AS trips FROM trips t JOIN zones z ON t.pickup_zone = z.zone_id GROUP BY z.zone ORDER BY trips DESC LIMIT 5;
-- Airport trips by hour
SELECT EXTRACT(HOUR FROM t.pickup_at) AS h, COUNT(*) AS trips FROM trips t INNER JOIN zones z ON t.dropoff_zone = z.zone_id WHERE z.airport GROUP BY h ORDER BY h;
-- Fares per km by distance band
SELECT CASE WHEN distance < 5 THEN 'short' WHEN distance < 15 THEN 'medium' ELSE 'long' END AS band, SUM(fare) / SUM(distance) AS per_km, COUNT(*) AS n FROM trips GROUP BY band ORDER BY band;
-- Fares in a five-number summary
SELECT MIN(fare) AS low, QUANTILE_CONT(fare, 0.25) AS q1, MEDIAN(fare) AS q2, QUANTILE_CONT(fare, 0.75) AS q3, MAX(fare) AS high FROM trips;
-- Trips each driver made
SELECT AVG(n) AS mean, STDDEV_POP(n) AS sd FROM (SELECT driver_id, COUNT(*) AS n FROM trips GROUP BY driver_id) d;
-- Income of drivers by shift
SELECT d.shift, AVG(t.income) AS income FROM drivers d JOIN (SELECT driver_id, SUM(fare + tip) AS income FROM trips GROUP BY driver_id) t USING (driver_id) GROUP BY d.shift ORDER BY d.shift;
-- Deciles of income of drivers
SELECT QUANTILE_CONT(income, 0.1) AS p10, QUANTILE_CONT(income, 0.9) AS p90 FROM (SELECT driver_id, SUM(fare + tip) AS income FROM trips GROUP BY driver_id) t;
-- Drivers active in each month
SELECT strftime(pickup_at, '%Y-%m') AS month, COUNT(DISTINCT driver_id) AS drivers FROM trips GROUP BY month ORDER BY month;
-- Trips for each active driver by month
SELECT date_trunc('month', pickup_at) AS month, COUNT(*) * 1.0 / COUNT(DISTINCT driver_id) AS each FROM trips GROUP BY 1 ORDER BY 1;
-- Rain and trips
SELECT w.rain, COUNT(*) AS trips, COUNT(*) * 1.0 / COUNT(DISTINCT w.day) AS per_day FROM trips t JOIN weather w ON w.day = CAST(t.pickup_at AS DATE) GROUP BY w.rain ORDER BY w.rain;
-- Trips by temperature band
SELECT CASE WHEN w.celsius < 5 THEN 'cold' WHEN w.celsius < 15 THEN 'mild' ELSE 'warm' END AS band, COUNT(*) AS trips FROM trips t JOIN weather w ON w.day = t.pickup_at::DATE GROUP BY band ORDER BY band;
-- Fare by vehicle
SELECT vehicle, AVG(fare) AS fare, COUNT(*) AS trips FROM trips JOIN drivers USING (driver_id) GROUP BY vehicle ORDER BY vehicle;
-- Ratings by years since the licence
SELECT date_diff('year', d.licensed, DATE '2024-01-01') AS years, AVG(t.rating) AS rating FROM trips t JOIN drivers d USING (driver_id) GROUP BY years ORDER BY years;
-- Share of trips that were rated
SELECT COUNT(rating) * 100.0 / COUNT(*) AS rated FROM trips;
-- Night trips
SELECT COUNT(*) FROM trips WHERE hour(pickup_at) >= 22 OR hour(pickup_at) < 6;
-- Rush hours against the rest
SELECT CASE WHEN EXTRACT(ISODOW FROM pickup_at) <= 5 AND EXTRACT(HOUR FROM pickup_at) IN (7, 8, 9, 16, 17, 18) THEN 'rush' ELSE 'other' END AS period, AVG(seconds / 60.0) AS minutes FROM trips GROUP BY period;
-- Trips in 15-minute buckets of one day
SELECT time_bucket(INTERVAL '6 hours', pickup_at) AS bucket, COUNT(*) AS trips FROM trips WHERE pickup_at >= '2024-02-01' AND pickup_at < '2024-02-08' GROUP BY bucket ORDER BY bucket;
-- Days without gaps, by generate_series
SELECT d.day, COUNT(t.trip_id) AS trips FROM (SELECT CAST(generate_series AS DATE) AS day FROM generate_series(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-31', INTERVAL 1 DAY)) d
LEFT JOIN trips t ON CAST(t.pickup_at AS DATE) = d.day GROUP BY d.day ORDER BY d.day;
-- Hours without gaps
WITH hours AS (SELECT range AS h FROM range(0, 24)), counts AS (SELECT hour(pickup_at) AS h, COUNT(*) AS n FROM trips GROUP BY 1)
SELECT hours.h, COALESCE(counts.n, 0) AS n FROM hours LEFT JOIN counts ON counts.h = hours.h ORDER BY hours.h;
-- A running total of revenue by week
SELECT week, revenue, SUM(revenue) OVER (ORDER BY week) AS so_far FROM (SELECT date_trunc('week', pickup_at) AS week, SUM(fare) AS revenue FROM trips GROUP BY week) w ORDER BY week;
-- Passengers: known and unknown
SELECT COALESCE(passengers, 0) AS passengers, COUNT(*) AS trips FROM trips GROUP BY 1 ORDER BY 1;
-- Fare without outliers
SELECT AVG(LEAST(fare, 60)) AS fare FROM trips;
-- Trips by payment and number of passengers, with totals
SELECT payment, passengers, COUNT(*) AS n FROM trips WHERE passengers IS NOT NULL GROUP BY ROLLUP (payment, passengers) ORDER BY payment, passengers;
-- Zones from which many trips leave but few arrive
WITH o AS (SELECT pickup_zone AS zone, COUNT(*) AS leave FROM trips GROUP BY 1), i AS (SELECT dropoff_zone AS zone, COUNT(*) AS arrive FROM trips GROUP BY 1)
SELECT o.zone, leave, arrive, leave - arrive AS net FROM o JOIN i ON o.zone = i.zone ORDER BY net DESC LIMIT 10;
-- Drivers who never drove at night
SELECT COUNT(*) FROM drivers d WHERE d.driver_id NOT IN (SELECT driver_id FROM trips WHERE hour(pickup_at) < 6);
-- Trips that start where the last one of the driver ended
SELECT COUNT(*) FROM (SELECT pickup_zone, LAG(dropoff_zone) OVER (PARTITION BY driver_id ORDER BY pickup_at) AS previous FROM trips) t WHERE pickup_zone = previous;
-- Idle time between trips
SELECT AVG(idle) AS hours FROM (SELECT date_diff('hour', dropoff_at, LEAD(pickup_at) OVER (PARTITION BY driver_id ORDER BY pickup_at)) AS idle FROM trips) t WHERE idle BETWEEN 0 AND 500;
-- First trip of each driver
SELECT hour(first_at) AS h, COUNT(*) AS drivers FROM (SELECT driver_id, MIN(pickup_at) AS first_at FROM trips GROUP BY driver_id) f GROUP BY h HAVING COUNT(*) >= 3 ORDER BY h;
-- Drivers with an average rating below three
SELECT COUNT(*) AS drivers FROM (SELECT driver_id, AVG(rating) AS mean FROM trips WHERE rating IS NOT NULL GROUP BY driver_id) t WHERE mean < 3;
-- Median fare by month and payment
SELECT date_trunc('month', pickup_at) AS month, payment, MEDIAN(fare) AS fare FROM trips GROUP BY month, payment ORDER BY month, payment;
-- Trips to the same zone twice on one day by one driver
SELECT COUNT(*) FROM trips a JOIN trips b ON a.driver_id = b.driver_id AND a.dropoff_zone = b.dropoff_zone AND a.trip_id < b.trip_id AND CAST(a.pickup_at AS DATE) = CAST(b.pickup_at AS DATE);
-- Weekend share by borough
SELECT z.borough, AVG(CASE WHEN isodow(t.pickup_at) IN (6, 7) THEN 1 ELSE 0 END) AS weekend FROM trips t JOIN zones z ON z.zone_id = t.pickup_zone GROUP BY z.borough ORDER BY z.borough;
-- Correlation of distance and fare
SELECT ROUND(CORR(distance, fare), 3) AS r, REGR_SLOPE(fare, distance) AS per_km FROM trips;
-- Cash trips above twenty
SELECT COUNT(*) FROM trips WHERE payment = 'cash' AND fare > 20 AND NOT (tip > 0);
-- Change to the same weekday of the week before
WITH daily AS (SELECT CAST(pickup_at AS DATE) AS day, COUNT(*) AS n FROM trips GROUP BY 1)
SELECT a.day, a.n, b.n AS before, a.n - b.n AS change FROM daily a JOIN daily b ON a.day = b.day + INTERVAL 7 DAY ORDER BY a.day;
-- Peak day of each month
SELECT DISTINCT ON (month) month, day, n FROM (SELECT date_trunc('month', pickup_at) AS month, CAST(pickup_at AS DATE) AS day, COUNT(*) AS n FROM trips GROUP BY 1, 2) t ORDER BY month, n DESC, day;
-- Vehicles with more than a third of the trips
SELECT vehicle FROM (SELECT vehicle, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM trips JOIN drivers USING (driver_id) GROUP BY vehicle) s WHERE share > 0.3 ORDER BY vehicle;
-- Seconds rounded to five minutes
SELECT ROUND(seconds / 300) * 300 AS about, COUNT(*) AS n FROM trips GROUP BY about ORDER BY about;
-- Trip lengths by AGE
SELECT COUNT(*) FROM trips WHERE AGE(dropoff_at, pickup_at) > INTERVAL '1 hour';
-- Trips longer than an hour by subtraction
SELECT COUNT(*) FROM trips WHERE dropoff_at - pickup_at > INTERVAL '1 hour';
-- Local time in New York
SELECT EXTRACT(HOUR FROM timezone('America/New_York', timezone('UTC', pickup_at))) AS h, COUNT(*) AS n FROM trips GROUP BY h ORDER BY h;
-- Minutes of the hour
SELECT MINUTE(pickup_at) // 15 AS quarter_hour, COUNT(*) AS n FROM trips GROUP BY 1 ORDER BY 1;
-- Drivers by number of days with a trip
SELECT days, COUNT(*) AS drivers FROM (SELECT driver_id, COUNT(DISTINCT CAST(pickup_at AS DATE)) AS days FROM trips GROUP BY driver_id) t GROUP BY days HAVING COUNT(*) > 2 ORDER BY days;
-- Highest fare of a trip for each driver, on average
SELECT AVG(top) AS top FROM (SELECT driver_id, MAX(fare) AS top FROM trips GROUP BY 1) t;
