#!/usr/bin/env node
// `npx tdoc`: runs the build, and first makes it if it is missing or older than the sources.
require('./build-if-changed.cjs');
require('../dist/cli/main.js');
