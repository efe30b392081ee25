-- question
SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor;

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
      TRY_CAST("_sf_t0"."patient_id" AS TEXT) COLLATE "binary" AS _sf_unit,
      (
        CASE
          WHEN ISNAN(
            TRY_CAST(CASE
              WHEN TYPEOF("_sf_t1"."floor") <> 'VARCHAR'
              OR STRLEN(TRY_CAST("_sf_t1"."floor" AS TEXT)) <= 1000
              THEN "_sf_t1"."floor"
            END AS DOUBLE)
          )
          THEN NULL
          ELSE TRY_CAST(CASE
            WHEN TYPEOF("_sf_t1"."floor") <> 'VARCHAR'
            OR STRLEN(TRY_CAST("_sf_t1"."floor" AS TEXT)) <= 1000
            THEN "_sf_t1"."floor"
          END AS DOUBLE)
        END
      ) AS _sf_k0,
      1 AS _sf_one
    FROM "visits" AS _sf_t0
    LEFT JOIN (
      SELECT
        *
      FROM (
        SELECT
          "_sf_t1"."ward",
          "_sf_t1"."floor",
          ROW_NUMBER() OVER (
            PARTITION BY (
              CASE
                WHEN STRLEN(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary") <= 1000
                THEN TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary"
                ELSE LEFT(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary", 1000)
              END
            )
            ORDER BY (
              CASE
                WHEN STRLEN(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary") <= 1000
                THEN TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary"
                ELSE LEFT(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary", 1000)
              END
            ), (
              CASE
                WHEN ISNAN(
                  TRY_CAST(CASE
                    WHEN TYPEOF("_sf_t1"."floor") <> 'VARCHAR'
                    OR STRLEN(TRY_CAST("_sf_t1"."floor" AS TEXT)) <= 1000
                    THEN "_sf_t1"."floor"
                  END AS DOUBLE)
                )
                THEN NULL
                ELSE TRY_CAST(CASE
                  WHEN TYPEOF("_sf_t1"."floor") <> 'VARCHAR'
                  OR STRLEN(TRY_CAST("_sf_t1"."floor" AS TEXT)) <= 1000
                  THEN "_sf_t1"."floor"
                END AS DOUBLE)
              END
            ), TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary", TRY_CAST("_sf_t1"."floor" AS TEXT) COLLATE "binary"
          ) AS _sf_place
        FROM "wards" AS _sf_t1
      ) AS _sf_ranked
      WHERE
        _sf_ranked._sf_place = 1
    ) AS _sf_t1
      ON (
        CASE
          WHEN STRLEN(TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary") <= 1000
          THEN TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary"
          ELSE LEFT(TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary", 1000)
        END
      ) = (
        CASE
          WHEN STRLEN(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary") <= 1000
          THEN TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary"
          ELSE LEFT(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary", 1000)
        END
      )
    WHERE
      NOT "_sf_t0"."patient_id" IS NULL
      AND (
        NOT (
          (
            (
              (
                CASE
                  WHEN STRLEN(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary") <= 1000
                  THEN TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary"
                  ELSE LEFT(TRY_CAST("_sf_t1"."ward" AS TEXT) COLLATE "binary", 1000)
                END
              )
            ) IS NULL
          )
        )
      )
      AND (
        CASE
          WHEN ISNAN(
            TRY_CAST(CASE
              WHEN TYPEOF("_sf_t1"."floor") <> 'VARCHAR'
              OR STRLEN(TRY_CAST("_sf_t1"."floor" AS TEXT)) <= 1000
              THEN "_sf_t1"."floor"
            END AS DOUBLE)
          )
          THEN NULL
          ELSE TRY_CAST(CASE
            WHEN TYPEOF("_sf_t1"."floor") <> 'VARCHAR'
            OR STRLEN(TRY_CAST("_sf_t1"."floor" AS TEXT)) <= 1000
            THEN "_sf_t1"."floor"
          END AS DOUBLE)
        END
      ) IN (CAST(1.0 AS DOUBLE), CAST(2.0 AS DOUBLE))
  ) AS _sf_rows
  GROUP BY
    _sf_rows._sf_unit,
    _sf_rows._sf_k0
) AS _sf_pairs
GROUP BY
  _sf_pairs._sf_k0;
