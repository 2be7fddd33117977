PRAGMA application_id = 1382376822;
PRAGMA user_version = 18;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT UNIQUE,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    priority INTEGER NOT NULL,
    agent_version TEXT,
    created_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    state INTEGER NOT NULL,
    owner TEXT,
    holder INTEGER,
    wake_at INTEGER,
    ready_at INTEGER NOT NULL,
    mail_count INTEGER NOT NULL,
    user_id TEXT,
    standing TEXT,
    ended INTEGER,
    ended_at INTEGER,
    recoveries INTEGER NOT NULL DEFAULT 0,
    recovered_at INTEGER,
    erases TEXT,
    erasing INTEGER,
    kind INTEGER NOT NULL,
    title TEXT,
    start_at INTEGER,
    spent TEXT,
    recoveries_in_all INTEGER NOT NULL DEFAULT 0
  , lost TEXT, lost_at INTEGER, change INTEGER NOT NULL DEFAULT 0, cost REAL GENERATED ALWAYS AS (iif(spent IS NULL, 0, ifnull(spent ->> '$.costUsd', -1))) VIRTUAL);
CREATE INDEX runs_ready ON runs (agent_id, tenant, priority DESC, ifnull(user_id, ''), ready_at) WHERE state = 0;
CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_waking ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_of_session ON runs (session_id, ended) WHERE run_id IS NOT NULL;
CREATE INDEX runs_by_creation ON runs (created_at) WHERE run_id IS NOT NULL;
CREATE INDEX runs_compacting ON runs (session_id) WHERE kind = 1 AND ended IS NULL AND run_id IS NOT NULL;
CREATE INDEX runs_held ON runs (session_id) WHERE state = 4;
CREATE INDEX runs_by_age_of_end ON runs (ended_at) WHERE ended_at IS NOT NULL AND run_id IS NOT NULL;
CREATE INDEX runs_erasing ON runs (erasing) WHERE erasing = 1;
CREATE TABLE run_metadata (
    run INTEGER PRIMARY KEY,
    body TEXT NOT NULL
  );
CREATE TABLE approvals (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    approval_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    requester TEXT NOT NULL,
    seq INTEGER NOT NULL
  );
CREATE UNIQUE INDEX approvals_of_run ON approvals (run, approval_id);
CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    link TEXT NOT NULL,
    body TEXT NOT NULL,
    refs TEXT,
    seal TEXT
  );
CREATE TABLE places (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    commit_ids TEXT NOT NULL,
    PRIMARY KEY (run, number)
  ) WITHOUT ROWID;
CREATE TABLE placed (through INTEGER NOT NULL);
CREATE TABLE deltas (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    about TEXT NOT NULL,
    body TEXT NOT NULL
  );
CREATE INDEX deltas_of_run ON deltas (run, about);
CREATE TABLE mail_ids (
    run INTEGER NOT NULL,
    mail_id TEXT NOT NULL,
    PRIMARY KEY (run, mail_id)
  ) WITHOUT ROWID;
CREATE INDEX mail_of_submits ON mail_ids (mail_id) WHERE mail_id >= 'submit ' AND mail_id < 'submit!';
CREATE TABLE mail (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    place INTEGER NOT NULL,
    body TEXT NOT NULL
  );
CREATE UNIQUE INDEX mail_of_run ON mail (run, place);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    agent_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    state INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    redelivered INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    line TEXT,
    asks INTEGER NOT NULL,
    run_id TEXT,
    died INTEGER,
    body TEXT
  );
CREATE UNIQUE INDEX messages_by_id ON messages (agent_id, message_id);
CREATE INDEX messages_here ON messages (agent_id, id) WHERE state < 3;
CREATE INDEX messages_sent ON messages (agent_id, line, id) WHERE asks = 0 AND state < 3;
CREATE INDEX messages_asking ON messages (agent_id, line, id) WHERE asks = 1 AND state = 1;
CREATE INDEX messages_next ON messages (agent_id, not_before, id) WHERE state = 0;
CREATE INDEX messages_taken ON messages (agent_id) WHERE state = 2;
CREATE INDEX messages_of_run ON messages (run_id) WHERE state = 2;
CREATE INDEX messages_dead ON messages (agent_id, died) WHERE state = 3;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    session_id TEXT UNIQUE,
    agent_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user_id TEXT,
    updated_at INTEGER NOT NULL,
    leaf_id TEXT,
    last_id TEXT,
    name TEXT,
    title TEXT
  , size INTEGER NOT NULL DEFAULT 0);
CREATE INDEX sessions_by_age ON sessions (updated_at) WHERE session_id IS NOT NULL;
CREATE INDEX sessions_unnamed ON sessions (updated_at, session_id) WHERE session_id >= 'ses_run_' AND session_id < 'ses_run`';
CREATE INDEX sessions_of_agent ON sessions (agent_id, updated_at) WHERE session_id IS NOT NULL;
CREATE INDEX sessions_of_tenant ON sessions (tenant, updated_at) WHERE tenant <> '-' AND session_id IS NOT NULL;
CREATE INDEX sessions_of_user ON sessions (user_id, updated_at) WHERE user_id IS NOT NULL AND session_id IS NOT NULL;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY CHECK (id / 4194304 = session),
    session INTEGER NOT NULL,
    stem TEXT NOT NULL,
    number INTEGER NOT NULL,
    count INTEGER NOT NULL,
    run_id TEXT,
    task INTEGER,
    visibility INTEGER NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    refs TEXT,
    seal TEXT NOT NULL
  );
CREATE INDEX entries_by_name ON entries (session, stem, number, count);
CREATE INDEX entries_unseen ON entries (session, run_id) WHERE visibility < 2;
CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    hash TEXT,
    tenant TEXT NOT NULL
  );
CREATE UNIQUE INDEX contents_by_hash ON contents (hash, tenant);
CREATE TABLE content_pieces (
    id INTEGER PRIMARY KEY,
    data BLOB NOT NULL
  );
CREATE TABLE content_owners (
    content INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    PRIMARY KEY (content, kind, owner)
  ) WITHOUT ROWID;
CREATE INDEX contents_of_owner ON content_owners (kind, owner);
CREATE TRIGGER commit_removed AFTER DELETE ON commits WHEN old.refs IS NOT NULL BEGIN
    DELETE FROM content_owners WHERE kind = 0 AND owner = old.id;
  END;
CREATE TRIGGER entries_removed AFTER DELETE ON entries WHEN old.refs IS NOT NULL BEGIN
    DELETE FROM content_owners WHERE kind = 1 AND owner = old.id;
  END;
CREATE TRIGGER entries_moved AFTER UPDATE OF id ON entries WHEN old.refs IS NOT NULL BEGIN
    UPDATE content_owners SET owner = new.id WHERE kind = 1 AND owner = old.id;
  END;
CREATE TRIGGER session_removed AFTER DELETE ON sessions BEGIN
    DELETE FROM content_owners WHERE kind = 3 AND owner = old.id;
  END;
CREATE TRIGGER content_disowned AFTER DELETE ON content_owners
    WHEN NOT EXISTS (SELECT 1 FROM content_owners WHERE content = old.content) BEGIN
    UPDATE contents SET hash = NULL WHERE id = old.content;
  END;
CREATE TABLE followers (
    id INTEGER PRIMARY KEY,
    topic_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    UNIQUE (topic_id, agent_id)
  );
CREATE TABLE usage_totals (
    day TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    nano_usd INTEGER NOT NULL,
    lost_tokens INTEGER NOT NULL,
    lost_nano_usd INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    runs INTEGER NOT NULL, lost_calls INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, tenant, user, agent, model)
  ) WITHOUT ROWID;
CREATE TABLE allotments (
    day TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    run_id TEXT NOT NULL,
    nano_usd INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, user, run_id)
  ) WITHOUT ROWID;
CREATE INDEX allotments_of_run ON allotments (run_id);
CREATE TABLE records (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER,
    body TEXT NOT NULL
  );
CREATE UNIQUE INDEX records_by_key ON records (namespace, tenant, key);
CREATE INDEX records_due ON records (namespace, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_paused ON runs (ended) WHERE standing < 'waiting' AND ended IS NULL AND run_id IS NOT NULL;
CREATE TABLE freed_changes (last INTEGER NOT NULL);
CREATE TRIGGER run_freed AFTER DELETE ON runs BEGIN
    UPDATE freed_changes SET last = old.change WHERE last < old.change;
  END;
CREATE INDEX runs_by_change ON runs (change);
CREATE INDEX runs_by_cost ON runs (cost) WHERE run_id IS NOT NULL;
CREATE INDEX runs_of_user ON runs (user_id, created_at) WHERE user_id IS NOT NULL AND run_id IS NOT NULL;
CREATE INDEX runs_of_user_in_tenant ON runs (tenant, user_id, created_at)
    WHERE tenant <> '-' AND user_id IS NOT NULL AND run_id IS NOT NULL;
CREATE INDEX runs_of_agent ON runs (agent_id, created_at) WHERE run_id IS NOT NULL;
CREATE INDEX runs_of_name ON runs (substr(agent_id, 1, instr(agent_id || '/', '/') - 1), created_at) WHERE run_id IS NOT NULL;
CREATE INDEX runs_of_tenant ON runs (tenant, created_at) WHERE tenant <> '-' AND run_id IS NOT NULL;
CREATE INDEX runs_of_kind ON runs (kind, created_at) WHERE kind > 0 AND run_id IS NOT NULL;
CREATE INDEX runs_suspended ON runs (created_at) WHERE state = 2 AND ended IS NULL AND NOT ((wake_at = start_at) IS TRUE) AND run_id IS NOT NULL;
CREATE INDEX runs_scheduled ON runs (created_at) WHERE state = 2 AND ended IS NULL AND ((wake_at = start_at) IS TRUE) AND run_id IS NOT NULL;
CREATE INDEX runs_by_end ON runs (ended, created_at) WHERE ended IS NOT NULL AND run_id IS NOT NULL;
CREATE TABLE "run_labels" (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    tenant TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (name, value, created_at, run)
  ) WITHOUT ROWID;
CREATE INDEX labels_of_run ON run_labels (run);
CREATE INDEX labels_of_tenant ON run_labels (tenant, name, value, created_at, run) WHERE tenant <> '-';
INSERT INTO runs VALUES (1, 'run_told', 'clerk', 'conversation', '=house', 2, NULL, 1700000000000, 1, 3, NULL, NULL, NULL, 1700000000000002, 0, 'ada', NULL, 0, 1700000000000, 0, NULL, NULL, NULL, 0, 'How is the weather?', NULL, '{"usage":{"inputTokens":200,"outputTokens":20,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00028},"costUsd":0.00028,"unreported":{"tokens":0,"costUsd":0},"turns":2}', 0, NULL, NULL, 3);
INSERT INTO runs VALUES (2, 'run_asked', 'clerk', 'ses_run_asked.before-1', '-', 2, NULL, 1700000000000, 1, 2, NULL, NULL, NULL, 1700000000000015, 0, NULL, 'waiting person', NULL, NULL, 0, NULL, NULL, NULL, 0, 'Write a letter.', NULL, '{"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"unreported":{"tokens":0,"costUsd":0},"turns":1}', 0, NULL, NULL, 24);
INSERT INTO runs VALUES (3, 'run_halted', 'lead', 'ses_run_halted.before-2', '-', 2, NULL, 1700000000000, 1, 2, NULL, NULL, NULL, 1700000000000016, 0, NULL, 'waiting signal', NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, '{"usage":{"inputTokens":200,"outputTokens":20,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00028},"costUsd":0.00028,"unreported":{"tokens":0,"costUsd":0},"turns":2}', 0, NULL, NULL, 25);
INSERT INTO runs VALUES (4, 'run_crowded', 'panel', 'ses_run_crowded.before-4', '-', 2, NULL, 1700000000000, 1, 2, NULL, NULL, NULL, 1700000000000017, 0, NULL, 'waiting signal seat', NULL, NULL, 0, NULL, NULL, NULL, 0, 'Who has a seat?', NULL, NULL, 0, NULL, NULL, 26);
INSERT INTO runs VALUES (5, 'run_asleep', 'sleeper', 'ses_run_asleep.before-5', '-', 2, NULL, 1700000000000, 1, 2, NULL, NULL, 1700003600000, 1700000000000018, 0, NULL, 'waiting time', NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 27);
INSERT INTO runs VALUES (6, 'run_spent', 'clerk', 'ses_run_spent.before-6', '-', 2, NULL, 1700000000000, 1, 2, NULL, NULL, NULL, 1700000000000009, 0, NULL, NULL, 2, 1700000000000, 0, NULL, NULL, NULL, 0, 'How is the weather?', NULL, '{"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"unreported":{"tokens":0,"costUsd":0},"turns":1}', 0, NULL, NULL, 18);
INSERT INTO runs VALUES (7, 'run_erased', 'clerk', 'ses_run_erased.before-7', '-', 2, NULL, 1700000000000, 1, 3, NULL, NULL, NULL, 1700000000000012, 0, NULL, NULL, 0, 1700000000000, 0, NULL, '[{"taskId":"t0","agentId":"clerk"}]', NULL, 0, NULL, NULL, '{"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"unreported":{"tokens":0,"costUsd":0},"turns":1}', 0, NULL, NULL, 20);
INSERT INTO runs VALUES (8, 'run_durable', 'durable', 'ses_run_durable.before-8', '-', 2, NULL, 1700000000000, 1, 2, NULL, NULL, NULL, 1700000000000019, 0, NULL, 'waiting signal', NULL, NULL, 0, NULL, NULL, NULL, 3, NULL, NULL, '{"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"unreported":{"tokens":0,"costUsd":0},"turns":1}', 0, NULL, NULL, 28);
INSERT INTO approvals VALUES (1, 2, 't0/1/0/Pp_HSh_KPXjYpALi', 't0', 'clerk', 10);
INSERT INTO commits VALUES (1, 1, 0, 1700000000000, 1, 'CHfP4T9dcIYD1GLKD1c26zc6oRHM83x2ozcXnlHP03o', '{"events":[{"type":"run_start","data":{"sessionId":"conversation","by":"ada"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"clerk","parentId":null,"supervision":{"runId":"run_told","sessionId":"conversation","rootId":"clerk","parentId":null,"depth":0,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"permanent","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":"How is the weather?","messages":[],"userId":"ada","metadata":{},"streaming":true,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}],"sessions":[{"entryId":"run_told"}]}', NULL, NULL);
INSERT INTO commits VALUES (2, 1, 1, 1700000000000, 8, 'U_WxTulljca3cg92R0NAs6VbofzEcaiMucJ_FG6bRzY', '{"steps":[["0","turn","turn","47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",{"at":1700000000000,"input":"How is the weather?","instructions":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","tools":"zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI","sessionId":"conversation","leafId":null,"maxToolCallsPerTurn":128,"contents":{"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4":"Be brief.","zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI":[{"name":"look","description":"The weather in a town","inputSchema":{"type":"object","properties":{"town":{"type":"string"}}}},{"name":"send","description":"Sends a letter","inputSchema":{"type":"object"}}]}}]],"opens":[["1",7]],"ledger":[["t0 1 1 8",1,922,0.000922,8192,0.000004,1,"2023-11-14","scripted","script"]],"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}},{"type":"input","data":{"input":"How is the weather?"}},{"type":"before_agent_start","data":{"instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","fromCache":false}},{"type":"context","data":{"sessionId":"conversation","leafId":null,"messages":0}},{"type":"agent_start","data":{"input":"How is the weather?","architecture":"react","instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4"}},["turn_start",1],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, NULL);
INSERT INTO commits VALUES (3, 1, 2, 1700000000000, 11, 'lyRMS7y3zUumHYIUpWBjmscgaIdJnz9KdFN9WGgeZLI', '{"ledger":[["t0 1 1 8",110,0.00014,10,0]],"steps":[["1","llm","main","l4F_TiNLtthMaypXp8pfR5nBfq8doXRRc-4IyDOwv88",[{"role":"assistant","content":[{"type":"tool_call","callId":"call_1_0","toolName":"look","input":{"town":"Sens"}},{"type":"tool_call","callId":"call_1_1","toolName":"look","input":{"town":"Troyes"}}]},"tool_calls",100,10,0,0,0,0.00014,"scripted","script"]]],"opens":[["1/0",9],["1/1",10]],"events":[["message_end",0,0],["tool_execution_start",0,0],["tool_execution_start",0,1]]}', NULL, NULL);
INSERT INTO commits VALUES (4, 1, 3, 1700000000000, 16, 'CrbrSWoNKYUZG7pXY7eLcgsN2ZDQNbJtrPkAImt1KMc', '{"steps":[["1/0","tool","look","B28oiqiLGIrHRPs7RjVIgStRcGyvQ0T8DPGkYLjUG5Y",{"output":{"type":"text","text":"rain in {\"town\":\"Sens\"}"},"isError":false}],["1/1","tool","look","d8nAUflSqVBOIPbtyXBDNLU37prBvmyw9P8n7QTjgwc",{"output":{"type":"text","text":"rain in {\"town\":\"Troyes\"}"},"isError":false}]],"opens":[["3",15]],"ledger":[["t0 3 1 16",1,284,0.00028399999999999996,8192,0.000004,1,"2023-11-14","scripted","script"]],"events":[["tool_execution_end",0,"call_1_0","look",0,"ok"],["tool_execution_end",1,"call_1_1","look",0,"ok"],["turn_end",1,"tool_calls",2],["turn_start",2],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, NULL);
INSERT INTO commits VALUES (5, 1, 4, 1700000000000, 23, 'le61Ks6zI6sUrGBXu41WLMjP7zxhJ-kdDE6NiFbCgE8', '{"ledger":[["t0 3 1 16",110,0.00014,10,0]],"steps":[["3","llm","main","B-IHSQY6W8_27PAY6WDg5UD2uL8ykpjFK9vLgRTKxFM",[{"role":"assistant","content":[{"type":"text","text":"the answer to How is the weather? after 4 messages"}]},"stop",100,10,0,0,0,0.00014,"scripted","script"]]],"tasks":[{"type":"end","taskId":"t0","outcome":{"status":"completed","output":"the answer to How is the weather? after 4 messages","failure":null,"finishReason":"stop"}}],"sessions":[{"type":"reveal","sessionId":"conversation","runId":"run_told","taskId":"t0"},{"visibility":"visible","entryId":"run_told"},{"visibility":"visible","count":3,"own":"t0/1"}],"events":[["message_end",0,0],["turn_end",2,"stop",0],{"type":"agent_end","data":{"status":"completed","output":"the answer to How is the weather? after 4 messages","turns":2,"usage":{"inputTokens":200,"outputTokens":20,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00028},"interruptionReason":null}},{"type":"save_point","data":{"sessionId":"conversation","leafId":"run_told/t0/3"}},{"type":"settled","data":{"sessionId":"conversation"}},{"type":"task_end","data":{"status":"completed","output":"the answer to How is the weather? after 4 messages","usage":{"inputTokens":200,"outputTokens":20,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00028},"finishReason":"stop"}},{"type":"run_end","data":{"status":"completed","usage":{"inputTokens":200,"outputTokens":20,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00028},"costUsd":0.00028,"turns":2,"lost":{"tokens":0,"costUsd":0}}}],"usage":[{"inputTokens":200,"outputTokens":20,"cachedTokens":0,"turns":2,"nanoUsd":280000,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":1,"day":"2023-11-14","agent":"clerk","model":"scripted/script"}]}', NULL, NULL);
INSERT INTO commits VALUES (6, 2, 0, 1700000000000, 1, 'l4ggwTS12ujDRb0BD6I3OCsX9bkVij0vn0pyuPJUXeY', '{"events":[{"type":"run_start","data":{"sessionId":"ses_run_asked.before-1"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"clerk","parentId":null,"supervision":{"runId":"run_asked","sessionId":"ses_run_asked.before-1","rootId":"clerk","parentId":null,"depth":0,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":1,"maxTurns":null,"deadlineMs":null},"retention":"permanent","priority":2},"budget":{"maxTokens":null,"maxCostUsd":1,"maxTurns":null,"deadlineMs":null},"input":"Write a letter.","messages":[],"userId":null,"metadata":{},"streaming":false,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":1,"maxTurns":null,"deadlineMs":null},"priority":2}],"sessions":[{"entryId":"run_asked"}]}', NULL, NULL);
INSERT INTO commits VALUES (7, 2, 1, 1700000000000, 8, '6QJH_GDPGg-ex5JIjOpRhDm0Kcdtu_OuNb7sLNnNDgo', '{"steps":[["0","turn","turn","47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",{"at":1700000000000,"input":"Write a letter.","instructions":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","tools":"zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI","sessionId":"ses_run_asked.before-1","leafId":null,"maxToolCallsPerTurn":128,"contents":{"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4":"Be brief.","zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI":[{"name":"look","description":"The weather in a town","inputSchema":{"type":"object","properties":{"town":{"type":"string"}}}},{"name":"send","description":"Sends a letter","inputSchema":{"type":"object"}}]}}]],"opens":[["1",7]],"ledger":[["t0 1 1 8",1,918,0.000918,8192,0.000004,1,"2023-11-14","scripted","script"]],"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":1,"maxTurns":null,"deadlineMs":null}}},{"type":"input","data":{"input":"Write a letter."}},{"type":"before_agent_start","data":{"instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","fromCache":false}},{"type":"context","data":{"sessionId":"ses_run_asked.before-1","leafId":null,"messages":0}},{"type":"agent_start","data":{"input":"Write a letter.","architecture":"react","instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4"}},["turn_start",1],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, NULL);
INSERT INTO commits VALUES (8, 2, 2, 1700000000000, 12, 'iQYbAGifiBdL5vAD3ux59m23fm6x3WmgmAhuZ-wfyt0', '{"ledger":[["t0 1 1 8",110,0.00014,10,0]],"steps":[["1","llm","main","sEFOpxRKXPJTgdk8s0KC4prmMe5zkClwUED3KRJVmQQ",[{"role":"assistant","content":[{"type":"text","text":"I will."},{"type":"tool_call","callId":"call_3_0","toolName":"send","input":{"to":"Ada"}}]},"tool_calls",100,10,0,0,0,0.00014,"scripted","script"]],["1/0/gate","gate","send","DAauOQBdpi_3LWYIhZHyETU8mngTgpjE-MEp5_H_oZc",{"decision":"ask","by":"tool","reason":"send requires approval","handled":false,"subject":"AVQPzl51m5Cm6gnai2Rd500tyj-_BCgerWnPMwVzWdU"}]],"opens":[["1/0",9],["1/0/approval",10]],"headcount":[{"type":"suspend","taskId":"t0"}],"events":[["message_end",0,0],["tool_execution_start",0,1],{"type":"approval_request","data":{"approvalId":"t0/1/0/Pp_HSh_KPXjYpALi","kind":"tool_call","toolName":"send","callId":"call_3_0","input":{"to":"Ada"},"inputDigest":"DAauOQBdpi_3LWYIhZHyETU8mngTgpjE-MEp5_H_oZc","toolDigest":"b3skHYG_50A7VNWXWKbPHHBMOEVQ8VihgUnPrCCgCfM","inputSchema":{"type":"object"},"reason":"send requires approval"}},{"type":"task_suspend","data":{"waitsFor":["approval t0/1/0/Pp_HSh_KPXjYpALi"],"until":null}}],"standing":{"status":"waiting","waitsFor":["person"]},"usage":[{"inputTokens":100,"outputTokens":10,"cachedTokens":0,"turns":1,"nanoUsd":140000,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":1,"day":"2023-11-14","agent":"clerk","model":"scripted/script"}],"spent":{"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"unreported":{"tokens":0,"costUsd":0},"turns":1}}', NULL, NULL);
INSERT INTO commits VALUES (9, 3, 0, 1700000000000, 1, 'Z-wfiIif0TwF66WJgif3lEstbWdVTjFEUQfOwtJ1mYk', '{"events":[{"type":"run_start","data":{"sessionId":"ses_run_halted.before-2"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"lead","parentId":null,"supervision":{"runId":"run_halted","sessionId":"ses_run_halted.before-2","rootId":"lead","parentId":null,"depth":0,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"permanent","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":null,"messages":[],"userId":null,"metadata":{},"streaming":false,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}]}', NULL, NULL);
INSERT INTO commits VALUES (10, 3, 1, 1700000000000, 2, 'x7D21WTdKQMoE_psgdLBLPebTq97aBAhZ_GZDe50NDg', '{"steps":[["0","value","now","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",1700000000000],["1","value","random","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",0.25],["2","value","uuid","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs","before-3"]],"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}}]}', NULL, NULL);
INSERT INTO commits VALUES (11, 3, 2, 1700000000000, 3, 'TU3C5IQPeeBNi-5WRZoisKfGq62llAHDeT21TaUSQBE', '{"steps":[["3","step","note","k_qrTs1y80MLZiLlwvJDTf-NUZP_S8fFnWTOEHHpUXw",{"noted":[1,"two",null]}]],"events":[["step_end","note",0]]}', NULL, NULL);
INSERT INTO commits VALUES (12, 3, 3, 1700000000000, 5, '6dNnbvYUnBLNz2YMJENwNBhJoGzdpjX2Sg7p6R4tKaY', '{"steps":[["4","step","fail","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",null,"t0",{"code":"internal","message":"no luck","cause":{"code":"internal","message":"no luck","details":{"name":"Error"}}}]],"opens":[["5",4]],"requests":[{"taskId":"t0","address":"5","frame":{"instructions":"xoHBkBG-6-Wl4mK5jQVacpkJtHmFU049Ef_SG4np--Y"},"messages":{"base":null,"pieces":[{"role":"user","content":[{"type":"text","text":"How is the weather?"}]}]},"contents":{"xoHBkBG-6-Wl4mK5jQVacpkJtHmFU049Ef_SG4np--Y":"Look first."}}],"ledger":[["t0 5 1 5",1,78,0.000078,8192,0.000004,1,"2023-11-14","scripted","script"]],"events":[{"type":"step_end","data":{"name":"fail","durationMs":0,"status":"error"}},["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, NULL);
INSERT INTO commits VALUES (13, 3, 4, 1700000000000, 7, 'A3Cz_1jd52MCXv1T_9BZoz-znV5yNTHmhJDEomMOCZ8', '{"ledger":[["t0 5 1 5",110,0.00014,10,0]],"steps":[["5","llm","main","l4F_TiNLtthMaypXp8pfR5nBfq8doXRRc-4IyDOwv88",[{"role":"assistant","content":[{"type":"tool_call","callId":"call_4_0","toolName":"look","input":{"town":"Sens"}},{"type":"tool_call","callId":"call_4_1","toolName":"look","input":{"town":"Troyes"}}]},"tool_calls",100,10,0,0,0,0.00014,"scripted","script"]]],"opens":[["5/0",6]],"events":[["message_end",0,0],["tool_execution_start",0,0]]}', NULL, NULL);
INSERT INTO commits VALUES (14, 3, 5, 1700000000000, 8, 'I9srZulx-7FGCZKypQw0u5LaW0KDpDfeQQnolBwrddE', '{"opens":[["5/1",7]],"events":[{"type":"tool_execution_start","data":{"callId":"call_4_1","toolName":"look","input":{"town":"Troyes"}}}]}', NULL, NULL);
INSERT INTO commits VALUES (15, 3, 6, 1700000000000, 10, 'VS5HzJ4ydYnbAA2Hp8OHnapAdJfF2uTLkKIc9tTCr1Q', '{"steps":[["5/0","tool","look","B28oiqiLGIrHRPs7RjVIgStRcGyvQ0T8DPGkYLjUG5Y",{"output":{"type":"text","text":"rain in {\"town\":\"Sens\"}"},"isError":false}],["5/1","tool","look","d8nAUflSqVBOIPbtyXBDNLU37prBvmyw9P8n7QTjgwc",{"output":{"type":"text","text":"rain in {\"town\":\"Troyes\"}"},"isError":false}]],"events":[["tool_execution_end",0,"call_4_0","look",0,"ok"],["tool_execution_end",1,"call_4_1","look",0,"ok"]]}', NULL, NULL);
INSERT INTO commits VALUES (16, 3, 7, 1700000000000, 12, 'EwQCYHtB6kl3PGyxxyISlGXzgrkw5ZciJg5xuYjCefw', '{"steps":[["6/left/0","step","left","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs","left"],["6/right/0","step","right","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs","right"]],"events":[["step_end","left",0],["step_end","right",0]]}', NULL, NULL);
INSERT INTO commits VALUES (17, 3, 8, 1700000000000, 15, '9XZOvt51cxUUnbnNEBhO2lLMz3bLW34tkJpzbeOwxT4', '{"steps":[["7/quick/0","step","quick","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs","first"],["7","race","quick slow","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",{"winner":"quick","value":"first"}],["8","spawn","helper","uqSBEF-42ZTBMMQ7vwHvbve__FxkSDsVMB1QuyAy-2c",{"kind":"spawned","handle":{"taskId":"t1","agentId":"helper"}}]],"headcount":[{"type":"acquire","taskId":"t1","parentId":"t0","priority":2}],"tasks":[{"type":"create","task":{"taskId":"t1","agentId":"helper","parentId":"t0","supervision":{"runId":"run_halted","sessionId":"ses_run_halted.before-2","rootId":"lead","parentId":"lead","depth":1,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"run","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":null,"messages":[],"userId":null,"metadata":{},"streaming":false,"takesInput":true,"onParentEnd":"cancel","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t1","parentId":"t0","budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}],"events":[["step_end","quick",0],{"type":"spawn_start","data":{"childTaskId":"t1","agentId":"helper","priority":2}},{"taskId":"t1","agentId":"helper","parentId":"t0"},{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}}]}', NULL, NULL);
INSERT INTO commits VALUES (18, 3, 9, 1700000000000, 16, 'Qoz9xOX5FWydgHJ8unZQs8tvEUNfH_16hgpB08LvItY', '{"headcount":[{"type":"suspend","taskId":"t0"}],"events":[{"type":"task_suspend","data":{"waitsFor":["join t1"],"until":null}}]}', NULL, NULL);
INSERT INTO commits VALUES (19, 3, 10, 1700000000000, 18, '6spuTy97Zigmb-n_6xgGvwlsH5tCvMd4W1Z98GrmeCI', '{"steps":[["0","step","breathe","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",null,"t1"]],"opens":[["1",17,"t1"]],"requests":[{"taskId":"t1","address":"1","messages":{"base":null,"pieces":[{"role":"user","content":[{"type":"text","text":"What is it?"}]}]}}],"ledger":[["t1 1 1 18",1,59,0.000059,8192,0.000004,1,"2023-11-14","scripted","script","t1","helper"]],"events":[{"taskId":"t1","agentId":"helper","parentId":"t0"},["step_end","breathe",0],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, NULL);
INSERT INTO commits VALUES (20, 3, 11, 1700000000000, 24, 'Z5BdpjRbOVzNITaoEWDrJq9TYB_naI8d1bWKmOdA5k8', '{"ledger":[["t1 1 1 18",110,0.00014,10,0],{"type":"close","taskId":"t1"}],"steps":[["1","llm","main","7pa2QvIoGeBM_FR_c0j875lLj3_na4qqD773rU90OQ0",[{"role":"assistant","content":[{"type":"text","text":"the answer to What is it? after 1 messages"}]},"stop",100,10,0,0,0,0.00014,"scripted","script"],"t1"],["9","wait","join t1","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",{"status":"completed","output":"the answer to What is it? after 1 messages","failure":null,"finishReason":"stop"}],["10","compaction","compaction","vHKAJjTVhdLYFEDDO7xWEO1BHOQpW70q-qb1MxpD_lE",{"pieces":[{"role":"user","content":[{"type":"text","text":"In short: weather."}]}],"tokensAfter":28}]],"tasks":[{"type":"end","taskId":"t1","outcome":{"status":"completed","output":"the answer to What is it? after 1 messages","failure":null,"finishReason":"stop"}}],"headcount":[{"type":"release","taskId":"t1"},{"type":"wake","taskId":"t0"},{"type":"suspend","taskId":"t0"}],"opens":[["10",21]],"events":[{"taskId":"t1","agentId":"helper","parentId":"t0"},["message_end",0,0],{"type":"task_end","data":{"status":"completed","output":"the answer to What is it? after 1 messages","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"finishReason":"stop"}},{"taskId":"t0","agentId":"lead","parentId":null},{"type":"task_wake","data":{"by":"join t1"}},{"type":"session_before_compact","data":{"sessionId":"ses_run_halted.before-2","contextTokens":100,"manual":false}},{"type":"session_compact","data":{"sessionId":"ses_run_halted.before-2","entryId":"run_halted/t0/10","tokensBefore":100,"tokensAfter":28}},{"type":"task_suspend","data":{"waitsFor":["signal go"],"until":null}}],"standing":{"status":"waiting","waitsFor":["signal"]},"usage":[{"inputTokens":100,"outputTokens":10,"cachedTokens":0,"turns":1,"nanoUsd":140000,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":1,"day":"2023-11-14","agent":"lead","model":"scripted/script"},{"inputTokens":100,"outputTokens":10,"cachedTokens":0,"turns":1,"nanoUsd":140000,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":0,"day":"2023-11-14","agent":"helper","model":"scripted/script"}],"spent":{"usage":{"inputTokens":200,"outputTokens":20,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00028},"costUsd":0.00028,"unreported":{"tokens":0,"costUsd":0},"turns":2}}', NULL, NULL);
INSERT INTO commits VALUES (21, 4, 0, 1700000000000, 1, 'tkWHSX6RpwXPMZkWDqQOlldZfKxgNclrGm9Ivf27rVA', '{"events":[{"type":"run_start","data":{"sessionId":"ses_run_crowded.before-4"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"panel","parentId":null,"supervision":{"runId":"run_crowded","sessionId":"ses_run_crowded.before-4","rootId":"panel","parentId":null,"depth":0,"spawnBudget":{"maxAgents":2,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"permanent","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":"Who has a seat?","messages":[],"userId":null,"metadata":{},"streaming":false,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}],"sessions":[{"entryId":"run_crowded"}]}', NULL, NULL);
INSERT INTO commits VALUES (22, 4, 1, 1700000000000, 14, 'KtoIoIRlNWzdR2GrtRRhvlACtIVwpOEAfM5wFGFlAGw', '{"steps":[["0","turn","turn","47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",{"at":1700000000000,"input":"Who has a seat?","instructions":"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU","tools":"T1PNoYwrqgwDVLtfmj7L5e0Sq02OEbqHPC8RFhICuUU","sessionId":"ses_run_crowded.before-4","leafId":null,"maxToolCallsPerTurn":128,"contents":{"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU":"","T1PNoYwrqgwDVLtfmj7L5e0Sq02OEbqHPC8RFhICuUU":[]}}],["1/patient/0","spawn","patient","6mLJVpQcFMTv9eZSFFl25di0pxlLHyKfiXuOmqy044I",{"kind":"spawned","handle":{"taskId":"t1","agentId":"patient"}}],["1/clerk/0","spawn","clerk","6mLJVpQcFMTv9eZSFFl25di0pxlLHyKfiXuOmqy044I",{"kind":"spawned","handle":{"taskId":"t2","agentId":"clerk"}}]],"opens":[["1/told",6],["1/patient/0",7],["1/clerk/0",8]],"headcount":[{"type":"acquire","taskId":"t1","parentId":"t0","priority":2,"waits":"pending"},{"type":"acquire","taskId":"t2","parentId":"t0","priority":2,"waits":"pending"},{"type":"suspend","taskId":"t0"},{"type":"suspend","taskId":"t1"}],"tasks":[{"type":"create","task":{"taskId":"t1","agentId":"patient","parentId":"t0","supervision":{"runId":"run_crowded","sessionId":"ses_run_crowded.before-4","rootId":"panel","parentId":"panel","depth":1,"spawnBudget":{"maxAgents":2,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"run","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":"Who has a seat?","messages":[],"userId":null,"metadata":{},"streaming":false,"takesInput":true,"onParentEnd":"cancel","onPause":"suspend","tools":null}},{"type":"create","task":{"taskId":"t2","agentId":"clerk","parentId":"t0","supervision":{"runId":"run_crowded","sessionId":"ses_run_crowded.before-4","rootId":"panel","parentId":"panel","depth":1,"spawnBudget":{"maxAgents":2,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"run","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":"Who has a seat?","messages":[],"userId":null,"metadata":{},"streaming":false,"takesInput":true,"onParentEnd":"cancel","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t1","parentId":"t0","budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2},{"type":"open","taskId":"t2","parentId":"t0","budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}],"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}},{"type":"input","data":{"input":"Who has a seat?"}},{"type":"before_agent_start","data":{"instructionsHash":"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU","fromCache":false}},{"type":"context","data":{"sessionId":"ses_run_crowded.before-4","leafId":null,"messages":0}},{"type":"agent_start","data":{"input":"Who has a seat?","architecture":"workflow","instructionsHash":"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"}},{"type":"flow_start","data":{"flow":"workflow"}},{"type":"flow_step_start","data":{"flow":"workflow","step":"patient"}},{"type":"flow_step_start","data":{"flow":"workflow","step":"clerk"}},{"type":"spawn_start","data":{"childTaskId":"t1","agentId":"patient","priority":2}},{"taskId":"t1","agentId":"patient","parentId":"t0"},{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}},{"taskId":"t0","agentId":"panel","parentId":null},{"type":"spawn_wait","data":{"childTaskId":"t2","agentId":"clerk","priority":2,"victim":null}},{"type":"task_suspend","data":{"waitsFor":["join t1","join t2"],"until":null}},{"taskId":"t1","agentId":"patient","parentId":"t0"},{"type":"task_suspend","data":{"waitsFor":["signal go"],"until":null}}],"standing":{"status":"waiting","waitsFor":["signal","seat"]}}', NULL, NULL);
INSERT INTO commits VALUES (23, 5, 0, 1700000000000, 1, 'DVUaaoTvXiRwQWV-ou5jThKzrF-I486rmqOZY11cUYo', '{"events":[{"type":"run_start","data":{"sessionId":"ses_run_asleep.before-5"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"sleeper","parentId":null,"supervision":{"runId":"run_asleep","sessionId":"ses_run_asleep.before-5","rootId":"sleeper","parentId":null,"depth":0,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"permanent","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":null,"messages":[],"userId":null,"metadata":{},"streaming":false,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}]}', NULL, NULL);
INSERT INTO commits VALUES (24, 5, 1, 1700000000000, 3, '0e4d2NHgFzR5q0rltSnVzD1HlKnsBvqsmk0iKCm5SsI', '{"steps":[["0","value","now","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",1700000000000],["1","value","sleep until","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",1700003600000]],"headcount":[{"type":"suspend","taskId":"t0"}],"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}},{"type":"task_suspend","data":{"waitsFor":["sleep 1700003600000"],"until":1700003600000}}],"standing":{"status":"waiting","waitsFor":["time"]}}', NULL, NULL);
INSERT INTO commits VALUES (25, 6, 0, 1700000000000, 1, '_r21NoTYSvVH7ceTJl7s4F5woPHSN7Mk4xoJasYvN8c', '{"events":[{"type":"run_start","data":{"sessionId":"ses_run_spent.before-6"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"clerk","parentId":null,"supervision":{"runId":"run_spent","sessionId":"ses_run_spent.before-6","rootId":"clerk","parentId":null,"depth":0,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":1,"deadlineMs":null},"retention":"permanent","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":1,"deadlineMs":null},"input":"How is the weather?","messages":[],"userId":null,"metadata":{},"streaming":false,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":1,"deadlineMs":null},"priority":2}],"sessions":[{"entryId":"run_spent"}]}', NULL, NULL);
INSERT INTO commits VALUES (26, 6, 1, 1700000000000, 8, 'UmAAbvPaaahoXH0spGLtdjcmseCynecKteGuy8v6Tb8', '{"steps":[["0","turn","turn","47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",{"at":1700000000000,"input":"How is the weather?","instructions":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","tools":"zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI","sessionId":"ses_run_spent.before-6","leafId":null,"maxToolCallsPerTurn":128,"contents":{"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4":"Be brief.","zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI":[{"name":"look","description":"The weather in a town","inputSchema":{"type":"object","properties":{"town":{"type":"string"}}}},{"name":"send","description":"Sends a letter","inputSchema":{"type":"object"}}]}}]],"opens":[["1",7]],"ledger":[["t0 1 1 8",1,922,0.000922,8192,0.000004,1,"2023-11-14","scripted","script"]],"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":1,"deadlineMs":null}}},{"type":"input","data":{"input":"How is the weather?"}},{"type":"before_agent_start","data":{"instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","fromCache":false}},{"type":"context","data":{"sessionId":"ses_run_spent.before-6","leafId":null,"messages":0}},{"type":"agent_start","data":{"input":"How is the weather?","architecture":"react","instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4"}},["turn_start",1],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, NULL);
INSERT INTO commits VALUES (27, 6, 2, 1700000000000, 11, 'dYECtjXGQo4ZPb6JYs81Bmhcx_dZUoPLcINYUN_mc_w', '{"ledger":[["t0 1 1 8",110,0.00014,10,0]],"steps":[["1","llm","main","l4F_TiNLtthMaypXp8pfR5nBfq8doXRRc-4IyDOwv88",[{"role":"assistant","content":[{"type":"tool_call","callId":"call_6_0","toolName":"look","input":{"town":"Sens"}},{"type":"tool_call","callId":"call_6_1","toolName":"look","input":{"town":"Troyes"}}]},"tool_calls",100,10,0,0,0,0.00014,"scripted","script"]]],"opens":[["1/0",10]],"events":[{"type":"budget_warning","data":{"taskId":"t0","dimension":"turns","limit":1,"used":1}},["message_end",0,0],["tool_execution_start",0,0]]}', NULL, NULL);
INSERT INTO commits VALUES (28, 6, 3, 1700000000000, 12, 'ua3pP-UVE9LDC1WVQFGxstTxr0zcWZcLYJZ2XMCOOjs', '{"opens":[["1/1",11]],"events":[{"type":"tool_execution_start","data":{"callId":"call_6_1","toolName":"look","input":{"town":"Troyes"}}}]}', NULL, NULL);
INSERT INTO commits VALUES (29, 6, 4, 1700000000000, 23, 'CeOo6kg6q_rmx4HQ3YVKZW80RfHjsVHqf86eXWNdCd4', '{"steps":[["1/0","tool","look","B28oiqiLGIrHRPs7RjVIgStRcGyvQ0T8DPGkYLjUG5Y",{"output":{"type":"text","text":"rain in {\"town\":\"Sens\"}"},"isError":false}],["1/1","tool","look","d8nAUflSqVBOIPbtyXBDNLU37prBvmyw9P8n7QTjgwc",{"output":{"type":"text","text":"rain in {\"town\":\"Troyes\"}"},"isError":false}],["3","llm","main","t3Ce-Aj5G-EqAy5o4bbDVSdRTvSjqLaETGOewErPQEU",null,"t0",{"code":"budget_exhausted","message":"reservation of 1 turn does not fit into the remaining 0 turns (spent 1)","details":{"taskId":"t0","dimension":"turns","limit":1,"used":2,"refused":{"reserved":1,"remaining":0,"spent":1,"unreported":0}}}]],"opens":[["3",16]],"ledger":[["t0 3 1 17",1,284,0.00028399999999999996,8192,0.000004,1,"2023-11-14","scripted","script"]],"tasks":[{"type":"end","taskId":"t0","outcome":{"status":"failed","output":null,"failure":{"code":"budget_exhausted","message":"reservation of 1 turn does not fit into the remaining 0 turns (spent 1)","details":{"taskId":"t0","dimension":"turns","limit":1,"used":2,"refused":{"reserved":1,"remaining":0,"spent":1,"unreported":0}}},"finishReason":"tool_calls"},"endedOn":["3"]}],"sessions":[{"type":"reveal","sessionId":"ses_run_spent.before-6","runId":"run_spent","taskId":"t0"},{"visibility":"visible","entryId":"run_spent"},{"visibility":"visible","count":3,"own":"t0/stopped-0/1"}],"events":[["tool_execution_end",0,"call_6_0","look",0,"ok"],["tool_execution_end",1,"call_6_1","look",0,"ok"],["turn_end",1,"tool_calls",2],["turn_start",2],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}],{"type":"budget_exhausted","data":{"taskId":"t0","dimension":"turns","limit":1,"used":2,"refused":{"reserved":1,"remaining":0,"spent":1,"unreported":0}}},{"type":"agent_end","data":{"status":"budget_exhausted","output":"","turns":1,"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"interruptionReason":"reservation of 1 turn does not fit into the remaining 0 turns (spent 1)"}},{"type":"save_point","data":{"sessionId":"ses_run_spent.before-6","leafId":"run_spent/t0/stopped-0/3"}},{"type":"settled","data":{"sessionId":"ses_run_spent.before-6"}},{"type":"task_end","data":{"status":"budget_exhausted","output":null,"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"failure":{"code":"budget_exhausted","message":"reservation of 1 turn does not fit into the remaining 0 turns (spent 1)","details":{"taskId":"t0","dimension":"turns","limit":1,"used":2,"refused":{"reserved":1,"remaining":0,"spent":1,"unreported":0}}},"finishReason":"tool_calls"}},{"type":"run_end","data":{"status":"budget_exhausted","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"turns":1,"lost":{"tokens":0,"costUsd":0}}}],"usage":[{"inputTokens":100,"outputTokens":10,"cachedTokens":0,"turns":1,"nanoUsd":140000,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":1,"day":"2023-11-14","agent":"clerk","model":"scripted/script"}]}', NULL, NULL);
INSERT INTO commits VALUES (30, 7, 0, 1700000000000, 1, 'ERJ_ldnugAJ8ixSS8y24AJqiGUxWSN9PDEhu6rVRHUo', '{"events":[{"type":"run_start","data":{"sessionId":"ses_run_erased.before-7"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"clerk","parentId":null,"supervision":{"runId":"run_erased","sessionId":"ses_run_erased.before-7","rootId":"clerk","parentId":null,"depth":0,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"none","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":null,"messages":[],"userId":null,"metadata":{},"streaming":false,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}]}', NULL, 'xyTxXIqAnXUP6AwYxv9bPVurRroGxL9y0llx0KFG7Ck');
INSERT INTO commits VALUES (31, 7, 1, 1700000000000, 8, 'VPT5rHeoevXz5x6lscCEX6vDLeul_v9Kalt9CohaChE', '{"steps":[["0","turn","turn","47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",null]],"opens":[["1",7]],"ledger":[["t0 1 1 8",1,915,0.0009149999999999999,8192,0.000004,1,"2023-11-14","scripted","script"]],"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}},{"type":"input","data":{"input":null}},{"type":"before_agent_start","data":{"instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","fromCache":false}},{"type":"context","data":{"sessionId":"ses_run_erased.before-7","leafId":null,"messages":0}},{"type":"agent_start","data":{"input":null,"architecture":"react","instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4"}},["turn_start",1],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, 'kHaBxyMqvtZxiF_iJc6fRD_XLj2gRo3uqnfZ7M1OQDk');
INSERT INTO commits VALUES (32, 7, 2, 1700000000000, 15, 'i3FOEzNX2qwP46csICchuDvIUmhXdDn4ep_COgJZPJ4', '{"ledger":[["t0 1 1 8",110,0.00014,10,0]],"steps":[["1","llm","main","2GvaMqBOlO0tZPfZ6ofq2epgZwZ3DTHJsGA9DKq3Wxc",[{"role":"assistant","content":[]},"stop",100,10,0,0,0,0.00014,"scripted","script"]]],"tasks":[{"type":"end","taskId":"t0","outcome":{"status":"completed","output":"the answer to Forget this. after 2 messages","failure":null,"finishReason":"stop"}}],"erases":[{"taskId":"t0","agentId":"clerk"}],"events":[["message_end",0,0],["turn_end",1,"stop",0],{"type":"agent_end","data":{"status":"completed","output":"","turns":1,"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"interruptionReason":null}},{"type":"save_point","data":{"sessionId":"ses_run_erased.before-7","leafId":"run_erased/t0/1"}},{"type":"settled","data":{"sessionId":"ses_run_erased.before-7"}},{"type":"task_end","data":{"status":"completed","output":"the answer to Forget this. after 2 messages","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"finishReason":"stop"}},{"type":"run_end","data":{"status":"completed","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"turns":1,"lost":{"tokens":0,"costUsd":0}}}],"usage":[{"inputTokens":100,"outputTokens":10,"cachedTokens":0,"turns":1,"nanoUsd":140000,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":1,"day":"2023-11-14","agent":"clerk","model":"scripted/script"}]}', NULL, 'spHLHxwZnwuLEPgy2NLbdspPQIMGpS6-DSSi474UZrg');
INSERT INTO commits VALUES (33, 8, 0, 1700000000000, 1, 'Wcp7pw9QKRu7dPBfOKlYwAkI8z1Abu7kULJAWw-A5Qo', '{"events":[{"type":"run_start","data":{"sessionId":"ses_run_durable.before-8"},"from":[0]}],"tasks":[{"type":"create","task":{"taskId":"t0","agentId":"durable","parentId":null,"supervision":{"runId":"run_durable","sessionId":"ses_run_durable.before-8","rootId":"durable","parentId":null,"depth":0,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"permanent","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":{"cents":900},"messages":[],"userId":null,"metadata":{},"streaming":false,"onParentEnd":"wait","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t0","parentId":null,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2}]}', NULL, NULL);
INSERT INTO commits VALUES (34, 8, 1, 1700000000000, 2, 'cvM3THcPWKeXLgYggcLVEXyZLskLuAcAOAhNCbXSiG8', '{"events":[{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}}]}', NULL, NULL);
INSERT INTO commits VALUES (35, 8, 2, 1700000000000, 11, '1MkRAjTJtMxu3LYE15TalvJrvDCLnsz6At2Kb2hUfUs', '{"steps":[["0","step","reserve","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",{"cents":900,"idempotencyKey":"run_durable/t0/0"}],["1","spawn","clerk","uqw0TkQDmvF5CC3ypSyrg4OaRpkS2aJmO8oBzhsMbsk",{"kind":"spawned","handle":{"taskId":"t1","agentId":"clerk"}}],["0","turn","turn","47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",{"at":1700000000000,"input":"Is it paid?","instructions":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","tools":"zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI","sessionId":null,"leafId":null,"maxToolCallsPerTurn":128,"contents":{"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4":"Be brief.","zzKYC0jj6W86tesXsYh8uihagu03XkJ9CckqOMNdMeI":[{"name":"look","description":"The weather in a town","inputSchema":{"type":"object","properties":{"town":{"type":"string"}}}},{"name":"send","description":"Sends a letter","inputSchema":{"type":"object"}}]}},"t1"]],"headcount":[{"type":"acquire","taskId":"t1","parentId":"t0","priority":2,"waits":"pending"}],"tasks":[{"type":"create","task":{"taskId":"t1","agentId":"clerk","parentId":"t0","supervision":{"runId":"run_durable","sessionId":"ses_run_durable.before-8","rootId":"durable","parentId":"durable","depth":1,"spawnBudget":{"maxAgents":50,"allowPreempt":true},"executionBudget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"retention":"run","priority":2},"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"input":"Is it paid?","messages":[],"userId":null,"metadata":{},"streaming":false,"takesInput":true,"onParentEnd":"cancel","onPause":"suspend","tools":null}}],"ledger":[{"type":"open","taskId":"t1","parentId":"t0","budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null},"priority":2},["t1 1 1 11",1,914,0.000914,8192,0.000004,1,"2023-11-14","scripted","script","t1","clerk"]],"opens":[["1",10,"t1"]],"events":[["step_end","reserve",0],{"type":"spawn_start","data":{"childTaskId":"t1","agentId":"clerk","priority":2}},{"taskId":"t1","agentId":"clerk","parentId":"t0"},{"type":"task_start","data":{"priority":2,"budget":{"maxTokens":null,"maxCostUsd":null,"maxTurns":null,"deadlineMs":null}}},{"type":"input","data":{"input":"Is it paid?"}},{"type":"before_agent_start","data":{"instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4","fromCache":false}},{"type":"context","data":{"sessionId":"ses_run_durable.before-8","leafId":null,"messages":0}},{"type":"agent_start","data":{"input":"Is it paid?","architecture":"react","instructionsHash":"ITwi7XI06xERbh6I8xTHPLOgGbXIf-Ikts5WZb2exQ4"}},["turn_start",1],["message_start","assistant",1,{"provider":"scripted","modelId":"script"}]]}', NULL, NULL);
INSERT INTO commits VALUES (36, 8, 3, 1700000000000, 18, 'UWI9Wo91XoyXmpuU6IWaE8LbsuBG1HamiTqqXZ7uKzg', '{"ledger":[["t1 1 1 11",110,0.00014,10,0],{"type":"close","taskId":"t1"}],"steps":[["1","llm","main","_LRy85lrNUBFZV88ccaou8_GA4KXKChdqZ4o_a93zd8",[{"role":"assistant","content":[{"type":"text","text":"the answer to Is it paid? after 2 messages"}]},"stop",100,10,0,0,0,0.00014,"scripted","script"],"t1"],["2","wait","join t1","dCNOmK_nSY-12vHzasLXiswzlGT5UHA7jAGYkvmCuQs",{"status":"completed","output":"the answer to Is it paid? after 2 messages","failure":null,"finishReason":"stop"}]],"tasks":[{"type":"end","taskId":"t1","outcome":{"status":"completed","output":"the answer to Is it paid? after 2 messages","failure":null,"finishReason":"stop"}}],"headcount":[{"type":"release","taskId":"t1"},{"type":"suspend","taskId":"t0"}],"events":[{"taskId":"t1","agentId":"clerk","parentId":"t0"},["message_end",0,0],["turn_end",1,"stop",0],{"type":"agent_end","data":{"status":"completed","output":"the answer to Is it paid? after 2 messages","turns":1,"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"interruptionReason":null}},{"type":"save_point","data":{"sessionId":"ses_run_durable.before-8","leafId":null}},{"type":"settled","data":{"sessionId":"ses_run_durable.before-8"}},{"type":"task_end","data":{"status":"completed","output":"the answer to Is it paid? after 2 messages","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"finishReason":"stop"}},{"taskId":"t0","agentId":"durable","parentId":null},{"type":"task_suspend","data":{"waitsFor":["signal paid"],"until":null}}],"standing":{"status":"waiting","waitsFor":["signal"]},"usage":[{"inputTokens":100,"outputTokens":10,"cachedTokens":0,"turns":1,"nanoUsd":140000,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":0,"day":"2023-11-14","agent":"clerk","model":"scripted/script"},{"inputTokens":0,"outputTokens":0,"cachedTokens":0,"turns":0,"nanoUsd":0,"lostTokens":0,"lostNanoUsd":0,"lostCalls":0,"unpriced":0,"runs":1,"day":"2023-11-14","agent":"durable","model":null}],"spent":{"usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014},"costUsd":0.00014,"unreported":{"tokens":0,"costUsd":0},"turns":1}}', NULL, NULL);
INSERT INTO placed VALUES (0);
INSERT INTO sessions VALUES (1, 'conversation', 'clerk', '=house', 'ada', 1700000000000, 'run_told/t0/3', 'run_told/t0/3', NULL, 'How is the weather?', 4);
INSERT INTO sessions VALUES (2, 'ses_run_asked.before-1', 'clerk', '-', NULL, 1700000000000, NULL, NULL, NULL, 'Write a letter.', 1);
INSERT INTO sessions VALUES (3, 'ses_run_crowded.before-4', 'panel', '-', NULL, 1700000000000, NULL, NULL, NULL, 'Who has a seat?', 1);
INSERT INTO sessions VALUES (4, 'ses_run_spent.before-6', 'clerk', '-', NULL, 1700000000000, 'run_spent/t0/stopped-0/3', 'run_spent/t0/stopped-0/3', NULL, 'How is the weather?', 4);
INSERT INTO entries VALUES (4194305, 1, 'run_told', -1, 1, 'run_told', 0, 2, 'message', '[{"parentId":null,"at":1700000000000,"message":{"role":"user","content":[{"type":"text","text":"How is the weather?"}]}}]', NULL, 'Kk5WEqkg-4u_0aY4y7ByCOLFtvQ996EVDxi94wAxcf4');
INSERT INTO entries VALUES (4194306, 1, 'run_told/t0/', 1, 3, 'run_told', 0, 2, 'message', '[{"parentId":"run_told","at":1700000000000,"message":{"role":"assistant","content":[{"type":"tool_call","callId":"call_1_0","toolName":"look","input":{"town":"Sens"}},{"type":"tool_call","callId":"call_1_1","toolName":"look","input":{"town":"Troyes"}}]},"model":{"provider":"scripted","modelId":"script"},"stopReason":"tool_calls","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014}},{"message":{"role":"tool","content":[{"type":"tool_result","callId":"call_1_0","toolName":"look","output":{"type":"text","text":"rain in {\"town\":\"Sens\"}"},"isError":false},{"type":"tool_result","callId":"call_1_1","toolName":"look","output":{"type":"text","text":"rain in {\"town\":\"Troyes\"}"},"isError":false}]}},{"message":{"role":"assistant","content":[{"type":"text","text":"the answer to How is the weather? after 4 messages"}]},"model":{"provider":"scripted","modelId":"script"},"stopReason":"stop","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014}}]', NULL, 'PtUNW35vL-xuSQ5KPs3F4YuJIKg6rjtecfzillN_IBM');
INSERT INTO entries VALUES (8388609, 2, 'run_asked', -1, 1, 'run_asked', 0, 0, 'message', '[{"parentId":null,"at":1700000000000,"message":{"role":"user","content":[{"type":"text","text":"Write a letter."}]}}]', NULL, 'aYM_fQ0O96qdvyhUtIaYlaGrples22nbhe9vBrejIOw');
INSERT INTO entries VALUES (12582913, 3, 'run_crowded', -1, 1, 'run_crowded', 0, 0, 'message', '[{"parentId":null,"at":1700000000000,"message":{"role":"user","content":[{"type":"text","text":"Who has a seat?"}]}}]', NULL, 'JOs-xWwbJfNkfP16nqxKsL0pw4OTDMuIFOBNrjOEoa0');
INSERT INTO entries VALUES (16777217, 4, 'run_spent', -1, 1, 'run_spent', 0, 2, 'message', '[{"parentId":null,"at":1700000000000,"message":{"role":"user","content":[{"type":"text","text":"How is the weather?"}]}}]', NULL, 'ykyLiUFT2oXTPRaU8SpcaERwQT_vdGimrdIhrTPL5-0');
INSERT INTO entries VALUES (16777218, 4, 'run_spent/t0/stopped-0/', 1, 3, 'run_spent', 0, 2, 'message', '[{"parentId":"run_spent","at":1700000000000,"message":{"role":"assistant","content":[{"type":"tool_call","callId":"call_6_0","toolName":"look","input":{"town":"Sens"}},{"type":"tool_call","callId":"call_6_1","toolName":"look","input":{"town":"Troyes"}}]},"model":{"provider":"scripted","modelId":"script"},"stopReason":"tool_calls","usage":{"inputTokens":100,"outputTokens":10,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"costUsd":0.00014}},{"message":{"role":"tool","content":[{"type":"tool_result","callId":"call_6_0","toolName":"look","output":{"type":"text","text":"rain in {\"town\":\"Sens\"}"},"isError":false},{"type":"tool_result","callId":"call_6_1","toolName":"look","output":{"type":"text","text":"rain in {\"town\":\"Troyes\"}"},"isError":false}]}},{"message":{"role":"assistant","content":[{"type":"text","text":"[interrupted: budget_exhausted]"}],"providerMetadata":{"reeve":{"interrupted":"budget_exhausted"}}}}]', NULL, 'fulN9MURw7758NKgjlcyEnnk0zPMAHgbYgQCM-qfTH8');
INSERT INTO usage_totals VALUES ('2023-11-14', '-', '-', 'clerk', '=scripted/script', 400, 40, 0, 4, 560000, 0, 0, 0, 3, 0);
INSERT INTO usage_totals VALUES ('2023-11-14', '-', '-', 'durable', '-', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0);
INSERT INTO usage_totals VALUES ('2023-11-14', '-', '-', 'helper', '=scripted/script', 100, 10, 0, 1, 140000, 0, 0, 0, 0, 0);
INSERT INTO usage_totals VALUES ('2023-11-14', '-', '-', 'lead', '=scripted/script', 100, 10, 0, 1, 140000, 0, 0, 0, 1, 0);
INSERT INTO usage_totals VALUES ('2023-11-14', '=house', '=ada', 'clerk', '=scripted/script', 200, 20, 0, 2, 280000, 0, 0, 0, 1, 0);
INSERT INTO records VALUES (1, 'engine', '-', 'kind', NULL, '"local"');
INSERT INTO freed_changes VALUES (0);
INSERT INTO sqlite_sequence VALUES ('approvals', 1);
INSERT INTO sqlite_sequence VALUES ('records', 1);
INSERT INTO sqlite_sequence VALUES ('runs', 8);
