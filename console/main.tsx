import { render } from 'preact';
import { App } from './frame/app';

render(<App />, document.body);
