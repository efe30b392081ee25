-- question
SELECT ward, SUM(stay) AS total, AVG(cost) AS mean FROM visits GROUP BY ward;

-- statement
SELECT
  _sf_pairs._sf_k0,
  SUM(_sf_pairs._sf_m0) AS _sf_m0,
  SUM(_sf_pairs._sf_m1) AS _sf_m1,
  SUM(_sf_pairs._sf_m2) AS _sf_m2
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
        CAST(LEAST(
          GREATEST(
            CASE
              WHEN SUM(CASE WHEN _sf_rows._sf_m0 IS NULL OR ISNAN(_sf_rows._sf_m0) THEN 0 ELSE 1 END) > 3
              THEN (
                SUM(
                  CASE
                    WHEN _sf_rows._sf_m0 IS NULL OR ISNAN(_sf_rows._sf_m0)
                    THEN 0
                    ELSE LEAST(
                      GREATEST(
                        CAST(FLOOR(
                          (
                            LEAST(GREATEST(_sf_rows._sf_m0, -100.0), 1000.0) - (
                              450.0
                            )
                          ) * 1024.0 + 0.5
                        ) AS INT),
                        -563200
                      ),
                      563200
                    )
                  END
                ) * 3
              ) // SUM(CASE WHEN _sf_rows._sf_m0 IS NULL OR ISNAN(_sf_rows._sf_m0) THEN 0 ELSE 1 END)
              ELSE SUM(
                CASE
                  WHEN _sf_rows._sf_m0 IS NULL OR ISNAN(_sf_rows._sf_m0)
                  THEN 0
                  ELSE LEAST(
                    GREATEST(
                      CAST(FLOOR(
                        (
                          LEAST(GREATEST(_sf_rows._sf_m0, -100.0), 1000.0) - (
                            450.0
                          )
                        ) * 1024.0 + 0.5
                      ) AS INT),
                      -563200
                    ),
                    563200
                  )
                END
              )
            END,
            -1689600
          ),
          1689600
        ) AS INT) AS _sf_m0,
        CAST(LEAST(
          GREATEST(
            SUM(
              CASE
                WHEN _sf_rows._sf_m1 IS NULL OR ISNAN(_sf_rows._sf_m1)
                THEN 0
                ELSE LEAST(
                  GREATEST(
                    CAST(FLOOR((
                      LEAST(GREATEST(_sf_rows._sf_m1, 0.0), 60.0) - (
                        0.0
                      )
                    ) * 8.0 + 0.5) AS INT),
                    0
                  ),
                  480
                )
              END
            ),
            0
          ),
          1440
        ) AS INT) AS _sf_m1,
        CAST(LEAST(
          GREATEST(
            SUM(CASE WHEN _sf_rows._sf_m2 IS NULL OR ISNAN(_sf_rows._sf_m2) THEN 0 ELSE 1 END),
            0
          ),
          3
        ) AS INT) AS _sf_m2,
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
              WHEN STRLEN(TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary") <= 1000
              THEN TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary"
              ELSE LEFT(TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary", 1000)
            END
          ) AS _sf_k0,
          (
            CASE
              WHEN ISNAN(
                TRY_CAST(CASE
                  WHEN TYPEOF("_sf_t0"."cost") <> 'VARCHAR'
                  OR STRLEN(TRY_CAST("_sf_t0"."cost" AS TEXT)) <= 1000
                  THEN "_sf_t0"."cost"
                END AS DOUBLE)
              )
              THEN NULL
              ELSE TRY_CAST(CASE
                WHEN TYPEOF("_sf_t0"."cost") <> 'VARCHAR'
                OR STRLEN(TRY_CAST("_sf_t0"."cost" AS TEXT)) <= 1000
                THEN "_sf_t0"."cost"
              END AS DOUBLE)
            END
          ) AS _sf_m0,
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
          ) AS _sf_m1,
          (
            CASE
              WHEN ISNAN(
                TRY_CAST(CASE
                  WHEN TYPEOF("_sf_t0"."cost") <> 'VARCHAR'
                  OR STRLEN(TRY_CAST("_sf_t0"."cost" AS TEXT)) <= 1000
                  THEN "_sf_t0"."cost"
                END AS DOUBLE)
              )
              THEN NULL
              ELSE TRY_CAST(CASE
                WHEN TYPEOF("_sf_t0"."cost") <> 'VARCHAR'
                OR STRLEN(TRY_CAST("_sf_t0"."cost" AS TEXT)) <= 1000
                THEN "_sf_t0"."cost"
              END AS DOUBLE)
            END
          ) AS _sf_m2
        FROM "visits" AS _sf_t0
        WHERE
          NOT "_sf_t0"."patient_id" IS NULL
          AND (
            CASE
              WHEN STRLEN(TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary") <= 1000
              THEN TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary"
              ELSE LEFT(TRY_CAST("_sf_t0"."ward" AS TEXT) COLLATE "binary", 1000)
            END
          ) IN ('north', 'south', 'west')
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
