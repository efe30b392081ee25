-- question
SELECT part, COUNT(*) AS n FROM (
  SELECT 'short' AS part FROM visits WHERE stay < 3 UNION ALL SELECT 'long' FROM visits WHERE stay >= 3
) GROUP BY part;

-- statement
SELECT
  _sf_pairs._sf_k0,
  SUM(_sf_pairs._sf_m0) AS _sf_m0
FROM (
  SELECT
    _sf_rows._sf_unit,
    _sf_rows._sf_k0,
    CAST(LEAST(GREATEST(COUNT(*), 0), 3) AS INT) AS _sf_m0
  FROM (
    SELECT
      "_sf_t0"."patient_id" AS _sf_unit,
      TRY_CAST("_sf_t0"."c8e200c92a66985f5227a4f364589006e" AS TEXT) COLLATE "binary" AS _sf_k0,
      1 AS _sf_one
    FROM (
      SELECT
        *
      FROM (
        SELECT
          "_sf_rows"."c8e200c92a66985f5227a4f364589006e",
          _sf_rows._sf_unit AS "patient_id"
        FROM (
          SELECT
            TRY_CAST("_sf_t0"."patient_id" AS TEXT) COLLATE "binary" AS _sf_unit,
            CAST('short' AS TEXT) AS c8e200c92a66985f5227a4f364589006e
          FROM "visits" AS _sf_t0
          WHERE
            NOT "_sf_t0"."patient_id" IS NULL
            AND (
              (
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
              ) < (
                CAST(3.0 AS DOUBLE)
              )
            )
        ) AS _sf_rows
        UNION ALL
        SELECT
          "_sf_rows"."c8e200c92a66985f5227a4f364589006e",
          _sf_rows._sf_unit AS "patient_id"
        FROM (
          SELECT
            TRY_CAST("_sf_t0"."patient_id" AS TEXT) COLLATE "binary" AS _sf_unit,
            CAST('long' AS TEXT) AS c8e200c92a66985f5227a4f364589006e
          FROM "visits" AS _sf_t0
          WHERE
            NOT "_sf_t0"."patient_id" IS NULL
            AND (
              (
                CAST(3.0 AS DOUBLE)
              ) <= (
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
        ) AS _sf_rows
      ) AS _sf_rows
    ) AS _sf_t0
    WHERE
      NOT "_sf_t0"."patient_id" IS NULL
      AND TRY_CAST("_sf_t0"."c8e200c92a66985f5227a4f364589006e" AS TEXT) COLLATE "binary" IN ('long', 'short')
  ) AS _sf_rows
  GROUP BY
    _sf_rows._sf_unit,
    _sf_rows._sf_k0
) AS _sf_pairs
GROUP BY
  _sf_pairs._sf_k0;
