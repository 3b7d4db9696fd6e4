#!/usr/bin/env node
// `npx tdoc`: runs the build, and makes it first where it is missing or older than the sources.
require('./build-if-changed.cjs');
require('../dist/cli/main.js');
