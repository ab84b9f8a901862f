-- A fence for migrations in MariaDB. Install it once, on the primary; it replicates.
-- The page docs/fencing.md tells how it works. The tests in tests/database run this file.

CREATE DATABASE holdfast;

-- The greatest pair of generation and fence that was seen. One row.
CREATE TABLE holdfast.fence (
  id TINYINT UNSIGNED NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  generation BIGINT UNSIGNED NOT NULL,
  fence BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB;

INSERT INTO holdfast.fence (generation, fence) VALUES (0, 0);

-- Nobody can log in with these accounts: the procedures have their rights. They have no more than they need, so that a
-- server that is read-only refuses them as it refuses everybody.
CREATE USER 'holdfast_fence'@'localhost' ACCOUNT LOCK;
GRANT SELECT, UPDATE ON holdfast.fence TO 'holdfast_fence'@'localhost';
CREATE USER 'holdfast_ddl'@'localhost' ACCOUNT LOCK;
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, REFERENCES ON app.* TO 'holdfast_ddl'@'localhost';

DELIMITER $$

-- Ends the statement of a migration whose pair is not the greatest one that was seen. It reads the newest pair, whatever the
-- transaction saw before, and keeps it until the transaction ends: nobody can overtake a migration between check and write.
CREATE DEFINER = 'holdfast_fence'@'localhost' PROCEDURE holdfast.require_authority()
  SQL SECURITY DEFINER
BEGIN
  DECLARE seen_generation, seen_fence BIGINT UNSIGNED;
  DECLARE refusal VARCHAR(128);
  SELECT generation, fence INTO seen_generation, seen_fence
    FROM holdfast.fence WHERE id = 1 LOCK IN SHARE MODE;
  IF NOT COALESCE(@holdfast_generation = seen_generation AND @holdfast_fence = seen_fence, FALSE) THEN
    SET refusal = CONCAT(
      'holdfast: refused, authority is (', COALESCE(@holdfast_generation, 'none'), ', ',
      COALESCE(@holdfast_fence, 'none'), '), and (', seen_generation, ', ', seen_fence, ') was seen'
    );
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = refusal;
  END IF;
END $$

-- Each connection of a migration begins with this. The newest holder of the lease moves the fence, and so shuts all earlier
-- ones out. For that it waits for a transaction, or a change of the schema, that an earlier one has under way on this server.
CREATE DEFINER = 'holdfast_fence'@'localhost'
  PROCEDURE holdfast.enter(IN own_generation BIGINT UNSIGNED, IN own_fence BIGINT UNSIGNED)
  SQL SECURITY DEFINER
BEGIN
  DECLARE is_newer BOOLEAN;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    DO RELEASE_LOCK('holdfast.ddl');
    RESIGNAL;
  END;
  SELECT own_generation > generation OR (own_generation = generation AND own_fence > fence) INTO is_newer
    FROM holdfast.fence WHERE id = 1;
  IF is_newer THEN
    IF COALESCE(GET_LOCK('holdfast.ddl', 60), 0) <> 1 THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'holdfast: refused, an earlier change of the schema still runs';
    END IF;
    UPDATE holdfast.fence SET generation = own_generation, fence = own_fence
      WHERE id = 1
        AND (own_generation > generation OR (own_generation = generation AND own_fence > fence));
    DO RELEASE_LOCK('holdfast.ddl');
  END IF;
  SET @holdfast_generation = own_generation, @holdfast_fence = own_fence;
  CALL holdfast.require_authority();
END $$

-- What the triggers of the tables call. Sessions of other accounts, as of the application itself, pass.
CREATE DEFINER = 'holdfast_fence'@'localhost' PROCEDURE holdfast.guard_row()
  SQL SECURITY DEFINER
BEGIN
  IF SUBSTRING_INDEX(USER(), '@', 1) = 'migrator' THEN
    CALL holdfast.require_authority();
  END IF;
END $$

-- The operator calls this when it promotes a server, before it makes the server writable. It has the operator's own rights,
-- and waits for no lease.
CREATE PROCEDURE holdfast.raise_generation(IN new_generation BIGINT UNSIGNED)
  SQL SECURITY INVOKER
BEGIN
  UPDATE holdfast.fence SET generation = new_generation, fence = 0
    WHERE id = 1 AND generation < new_generation;
END $$

-- Changes of the schema fire no triggers. So the migration has no right to make them itself: it hands them to a procedure
-- that checks first.
CREATE DEFINER = 'holdfast_ddl'@'localhost' PROCEDURE holdfast.ddl(IN change_of_schema LONGTEXT)
  SQL SECURITY DEFINER
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    DO RELEASE_LOCK('holdfast.ddl');
    RESIGNAL;
  END;
  IF COALESCE(GET_LOCK('holdfast.ddl', 60), 0) <> 1 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'holdfast: refused, another change of the schema still runs';
  END IF;
  CALL holdfast.require_authority();
  EXECUTE IMMEDIATE change_of_schema;
  DO RELEASE_LOCK('holdfast.ddl');
END $$

DELIMITER ;

GRANT EXECUTE ON PROCEDURE holdfast.require_authority TO 'holdfast_fence'@'localhost';
GRANT EXECUTE ON PROCEDURE holdfast.enter TO 'holdfast_fence'@'localhost';
GRANT EXECUTE ON PROCEDURE holdfast.guard_row TO 'holdfast_fence'@'localhost';
GRANT EXECUTE ON PROCEDURE holdfast.require_authority TO 'holdfast_ddl'@'localhost';
GRANT EXECUTE ON PROCEDURE holdfast.ddl TO 'holdfast_ddl'@'localhost';

-- The account of migrations. It can neither move the fence back nor go around it.
CREATE USER 'migrator'@'%' IDENTIFIED BY 'change-me';
GRANT SELECT, INSERT, UPDATE, DELETE ON app.* TO 'migrator'@'%';
GRANT EXECUTE ON PROCEDURE holdfast.enter TO 'migrator'@'%';
GRANT EXECUTE ON PROCEDURE holdfast.ddl TO 'migrator'@'%';
