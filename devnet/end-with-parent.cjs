// Loaded into a child process before its program (`node --require`). When the channel to the parent closes,
// the parent has ended, perhaps by SIGKILL, and nothing else would end this process.
/* global process, setTimeout */
'use strict';

const KILL_AFTER_MS = 5_000;

if (process.channel) {
  process.channel.unref();
  process.once('disconnect', () => {
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), KILL_AFTER_MS).unref();
    process.kill(process.pid, 'SIGTERM');
  });
}
