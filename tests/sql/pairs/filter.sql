-- question
SELECT COUNT(*) FILTER (WHERE stay > 7) AS long, COUNT(*) AS n
FROM visits WHERE day >= DATE '2024-01-01' AND LOWER(diagnosis) LIKE 'a%';

-- statement
SELECT
  SUM(_sf_pairs._sf_m0) AS _sf_m0,
  SUM(_sf_pairs._sf_m1) AS _sf_m1
FROM (
  SELECT
    _sf_rows._sf_unit,
    CAST(LEAST(GREATEST(COUNT(*), 0), 3) AS INT) AS _sf_m0,
    CAST(LEAST(
      GREATEST(
        SUM(CASE WHEN _sf_rows._sf_m1 IS NULL OR ISNAN(_sf_rows._sf_m1) THEN 0 ELSE 1 END),
        0
      ),
      3
    ) AS INT) AS _sf_m1
  FROM (
    SELECT
      TRY_CAST("_sf_t0"."patient_id" AS TEXT) COLLATE "binary" AS _sf_unit,
      (
        CASE
          WHEN (
            (
              CAST(7.0 AS DOUBLE)
            ) < (
              (
                CASE
                  WHEN ISNAN(
                    TRY_CAST(CASE
                      WHEN TYPEOF("_sf_t0"."stay") <> 'VARCHAR'
                      OR STRLEN(TRY_CAST("_sf_t0"."stay" AS TEXT)) <= 1000
                      THEN "_sf_t0"."stay"
                    END AS DOUBLE)
                  )
                  THEN NULL
                  ELSE TRY_CAST(CASE
                    WHEN TYPEOF("_sf_t0"."stay") <> 'VARCHAR'
                    OR STRLEN(TRY_CAST("_sf_t0"."stay" AS TEXT)) <= 1000
                    THEN "_sf_t0"."stay"
                  END AS DOUBLE)
                END
              )
            )
          )
          THEN CAST(1.0 AS DOUBLE)
          ELSE NULL
        END
      ) AS _sf_m1
    FROM "visits" AS _sf_t0
    WHERE
      NOT "_sf_t0"."patient_id" IS NULL
      AND (
        (
          (
            TRY_CAST('2024-01-01 00:00:00' AS TIMESTAMP)
          ) <= (
            TRY_CAST(CASE
              WHEN TYPEOF("_sf_t0"."day") <> 'VARCHAR'
              OR STRLEN(TRY_CAST("_sf_t0"."day" AS TEXT)) <= 1000
              THEN "_sf_t0"."day"
            END AS TIMESTAMP)
          )
        )
        AND (
          (
            LOWER(
              (
                CASE
                  WHEN STRLEN(TRY_CAST("_sf_t0"."diagnosis" AS TEXT) COLLATE "binary") <= 1000
                  THEN TRY_CAST("_sf_t0"."diagnosis" AS TEXT) COLLATE "binary"
                  ELSE LEFT(TRY_CAST("_sf_t0"."diagnosis" AS TEXT) COLLATE "binary", 1000)
                END
              )
            )
          ) LIKE (
            'a%'
          )
        )
      )
  ) AS _sf_rows
  GROUP BY
    _sf_rows._sf_unit
) AS _sf_pairs;
