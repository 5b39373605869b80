-- Functions of the record on PostgreSQL. Installed after every migration; replacing them is harmless.

-- The one clock. A statement that waited for a lock must call it after the lock.
CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$;

-- The version of a tenant's administration as committed at this moment: a volatile function takes a snapshot of its own.
CREATE OR REPLACE FUNCTION ledger_tenant_seq(tenant uuid) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT head_seq FROM ledger_tenant_head WHERE tenant_id = tenant); END $$;

-- A row of a change was not as read: nothing of the statement happens.
CREATE OR REPLACE FUNCTION ledger_moved() RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$ BEGIN RAISE EXCEPTION 'the record moved' USING ERRCODE = 'LM001'; END $$;

-- Rows of the record stay as they were written.
CREATE OR REPLACE FUNCTION ledger_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'LA001'; END $$;

-- A body loses its bytes and its salt together, once, and nothing else of it changes.
CREATE OR REPLACE FUNCTION ledger_body_erased_once() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND NEW.content IS NULL AND NEW.salt IS NULL
     AND (NEW.id, NEW.tenant_id, NEW.commitment, NEW.media, NEW.size)
       = (OLD.id, OLD.tenant_id, OLD.commitment, OLD.media, OLD.size) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'ledger_body is append-only but for erasure' USING ERRCODE = 'LA001';
END $$;
