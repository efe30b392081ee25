-- question
SELECT diagnosis, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY diagnosis HAVING patients > 20;

-- statement
SELECT
  _sf_pairs._sf_k0,
  COUNT(*) AS _sf_m0
FROM (
  SELECT
    *
  FROM (
    SELECT
      _sf_pairs.*,
      COUNT(*) OVER (PARTITION BY _sf_pairs._sf_unit ORDER BY _sf_pairs._sf_hash) AS _sf_place
    FROM (
      SELECT
        _sf_rows._sf_unit,
        _sf_rows._sf_k0,
        CAST(MD5_NUMBER(
          CONCAT(
            TRY_CAST(_sf_rows._sf_unit AS TEXT) COLLATE "binary",
            '|',
            COALESCE(_sf_rows._sf_k0, '||'),
            '|',
            '1'
          )
        ) & 281474976710655 AS BIGINT) AS _sf_hash
      FROM (
        SELECT
          TRY_CAST("_sf_t0"."patient_id" AS TEXT) COLLATE "binary" AS _sf_unit,
          (
            CASE
              WHEN STRLEN(TRY_CAST("_sf_t0"."diagnosis" AS TEXT) COLLATE "binary") <= 1000
              THEN TRY_CAST("_sf_t0"."diagnosis" AS TEXT) COLLATE "binary"
              ELSE LEFT(TRY_CAST("_sf_t0"."diagnosis" AS TEXT) COLLATE "binary", 1000)
            END
          ) AS _sf_k0,
          1 AS _sf_one
        FROM "visits" AS _sf_t0
        WHERE
          NOT "_sf_t0"."patient_id" IS NULL
      ) AS _sf_rows
      GROUP BY
        _sf_rows._sf_unit,
        _sf_rows._sf_k0
    ) AS _sf_pairs
  ) AS _sf_ranked
  WHERE
    _sf_ranked._sf_place <= 2
) AS _sf_pairs
GROUP BY
  _sf_pairs._sf_k0;
