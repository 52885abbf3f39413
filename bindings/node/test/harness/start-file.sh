echo from the start file
